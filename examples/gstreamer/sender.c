/* Sends video from webrtcbin at the rate of a controller of Weir: sender CONTROLLER SECONDS FOLDER
 * The offer goes to FOLDER/offer.sdp, and the answer is awaited in FOLDER/answer.sdp. See README.md. */
#define GST_USE_UNSTABLE_API /* The header of webrtcbin asks for it. */
#include <gst/gst.h>
#include <gst/webrtc/webrtc.h>

/* The header extension makes the receiver report each packet. A buffer of one second makes the encoder obey soon. */
#define PIPELINE \
    "videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1 ! video/x-raw,width=640,height=360,framerate=30/1" \
    " ! videoconvert ! queue ! vp8enc name=encoder deadline=1 cpu-used=-8 end-usage=cbr lag-in-frames=0" \
    " keyframe-max-dist=3000 buffer-size=1000 buffer-initial-size=500 buffer-optimal-size=600 overshoot=15" \
    " ! rtpvp8pay mtu=1200 picture-id-mode=15-bit" \
    " ! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000,extmap-1=(string)" \
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01 ! webrtcbin name=webrtc bundle-policy=max-bundle"

static GstElement *on_request_aux_sender(GstElement *webrtc, GObject *transport, GstElement *weircc) {
    return gst_object_ref(weircc);
}

static void on_offer(GstPromise *promise, gpointer webrtc) {
    const GValue *offer = gst_structure_get_value(gst_promise_get_reply(promise), "offer");
    g_signal_emit_by_name(webrtc, "set-local-description", g_value_get_boxed(offer), NULL);
    gst_promise_unref(promise);
}

static void on_negotiation_needed(GstElement *webrtc) {
    g_signal_emit_by_name(webrtc, "create-offer", NULL, gst_promise_new_with_change_func(on_offer, webrtc, NULL));
}

/* Writes the offer as soon as it has all addresses. */
static gboolean write_offer(GstElement *webrtc, const gchar *path) {
    GstWebRTCICEGatheringState state;
    g_autoptr(GstWebRTCSessionDescription) offer = NULL;
    g_object_get(webrtc, "ice-gathering-state", &state, "local-description", &offer, NULL);
    if (state != GST_WEBRTC_ICE_GATHERING_STATE_COMPLETE)
        return FALSE;
    g_autofree gchar *text = gst_sdp_message_as_text(offer->sdp);
    return g_file_set_contents(path, text, -1, NULL);
}

static gboolean read_answer(GstElement *webrtc, const gchar *path) {
    g_autofree gchar *text = NULL;
    GstSDPMessage *sdp;
    if (!g_file_get_contents(path, &text, NULL, NULL) || gst_sdp_message_new_from_text(text, &sdp) != GST_SDP_OK)
        return FALSE;
    g_autoptr(GstWebRTCSessionDescription) answer = gst_webrtc_session_description_new(GST_WEBRTC_SDP_TYPE_ANSWER, sdp);
    g_signal_emit_by_name(webrtc, "set-remote-description", answer, NULL);
    return TRUE;
}

int main(int count, char **words) {
    gst_init(&count, &words);
    if (count != 4)
        return g_printerr("write: sender CONTROLLER SECONDS FOLDER\n"), 2;
    GstElement *weircc = gst_element_factory_make("weircc", NULL), *pipeline = gst_parse_launch(PIPELINE, NULL);
    if (!weircc)
        return g_printerr("no element weircc: run `make install-gst`, or set GST_PLUGIN_PATH\n"), 1;
    GObject *transceiver, *encoder = (GObject *)gst_bin_get_by_name(GST_BIN(pipeline), "encoder");
    GstElement *webrtc = gst_bin_get_by_name(GST_BIN(pipeline), "webrtc");
    g_object_set(gst_object_ref_sink(weircc), "algorithm", words[1], "encoder", encoder, NULL);
    /* Retransmissions; without them a lost packet freezes the picture until the next key frame. */
    g_signal_emit_by_name(webrtc, "get-transceiver", 0, &transceiver);
    g_object_set(transceiver, "do-nack", TRUE, NULL);
    g_signal_connect(webrtc, "request-aux-sender", G_CALLBACK(on_request_aux_sender), weircc);
    g_signal_connect(webrtc, "on-negotiation-needed", G_CALLBACK(on_negotiation_needed), NULL);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    gchar *offer = g_build_filename(words[3], "offer.sdp", NULL), *answer = g_build_filename(words[3], "answer.sdp", NULL);
    guint64 target, is_offered = FALSE, is_answered = FALSE, lines = 0;
    GstMessage *error = NULL;
    for (GTimer *timer = g_timer_new(); !error && g_timer_elapsed(timer, NULL) < g_ascii_strtod(words[2], NULL);) {
        is_offered = is_offered || write_offer(webrtc, offer);
        is_answered = is_answered || read_answer(webrtc, answer);
        g_object_get(weircc, "target-bitrate", &target, NULL);
        if (g_timer_elapsed(timer, NULL) > lines + 1)
            g_print("time_s %" G_GUINT64_FORMAT " target_kbps %.0f\n", ++lines, target / 1e3);
        error = gst_bus_timed_pop_filtered(GST_ELEMENT_BUS(pipeline), 50 * GST_MSECOND, GST_MESSAGE_ERROR);
    }
    gst_element_set_state(pipeline, GST_STATE_NULL);
    return error != NULL;
}
