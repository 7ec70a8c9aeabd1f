/* Sends video from webrtcbin at the rate of a controller of Weir: sender CONTROLLER SECONDS FOLDER
 *
 * The offer goes to FOLDER/offer.sdp, and the answer is awaited in FOLDER/answer.sdp. See README.md. */
#define GST_USE_UNSTABLE_API /* The header of webrtcbin asks for it. */
#include <gst/gst.h>
#include <gst/webrtc/webrtc.h>
#include <stdlib.h>

/* Without the header extension the receiver sends no feedback per packet. With a buffer of one second
 * instead of six, the encoder follows a lower target sooner. */
#define PIPELINE \
    "videotestsrc is-live=true pattern=zone-plate kx2=20 ky2=20 kt=1" \
    " ! video/x-raw,width=640,height=360,framerate=30/1 ! videoconvert ! queue" \
    " ! vp8enc name=encoder deadline=1 cpu-used=8 end-usage=cbr lag-in-frames=0" \
    " buffer-size=1000 buffer-initial-size=500 buffer-optimal-size=600 overshoot=15" \
    " ! rtpvp8pay mtu=1200 picture-id-mode=15-bit" \
    " ! application/x-rtp,media=video,encoding-name=VP8,payload=96,clock-rate=90000,extmap-1=(string)" \
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01" \
    " ! webrtcbin name=webrtc bundle-policy=max-bundle"

static GMainLoop *loop;
static GstElement *webrtc, *weircc;
static gchar *offer_path, *answer_path;
static gint64 start_us;

static GstElement *on_request_aux_sender(GstElement *element, GObject *transport, gpointer data) {
    return gst_object_ref(weircc);
}

static void on_gathering_state(GstElement *element, GParamSpec *property, gpointer data) {
    GstWebRTCICEGatheringState state;
    GstWebRTCSessionDescription *offer;
    g_object_get(webrtc, "ice-gathering-state", &state, NULL);
    if (state != GST_WEBRTC_ICE_GATHERING_STATE_COMPLETE)
        return;
    g_object_get(webrtc, "local-description", &offer, NULL);
    gchar *text = gst_sdp_message_as_text(offer->sdp);
    g_file_set_contents(offer_path, text, -1, NULL);
    g_free(text);
    gst_webrtc_session_description_free(offer);
}

static void on_offer(GstPromise *promise, gpointer data) {
    GstWebRTCSessionDescription *offer;
    gst_structure_get(gst_promise_get_reply(promise), "offer", GST_TYPE_WEBRTC_SESSION_DESCRIPTION, &offer, NULL);
    g_signal_emit_by_name(webrtc, "set-local-description", offer, NULL);
    gst_webrtc_session_description_free(offer);
    gst_promise_unref(promise);
}

static void on_negotiation_needed(GstElement *element, gpointer data) {
    g_signal_emit_by_name(webrtc, "create-offer", NULL, gst_promise_new_with_change_func(on_offer, NULL, NULL));
}

static gboolean look_for_answer(gpointer data) {
    gchar *text;
    GstSDPMessage *sdp;
    if (!g_file_get_contents(answer_path, &text, NULL, NULL))
        return G_SOURCE_CONTINUE;
    gst_sdp_message_new_from_text(text, &sdp);
    g_free(text);
    GstWebRTCSessionDescription *answer = gst_webrtc_session_description_new(GST_WEBRTC_SDP_TYPE_ANSWER, sdp);
    g_signal_emit_by_name(webrtc, "set-remote-description", answer, NULL);
    gst_webrtc_session_description_free(answer);
    return G_SOURCE_REMOVE;
}

static gboolean print_target(gpointer data) {
    guint64 target;
    g_object_get(weircc, "target-bitrate", &target, NULL);
    g_print("time_s %.0f target_kbps %.0f\n", (g_get_monotonic_time() - start_us) / 1e6, target / 1e3);
    return G_SOURCE_CONTINUE;
}

static gboolean stop(gpointer data) {
    g_main_loop_quit(loop);
    return G_SOURCE_REMOVE;
}

int main(int count, char **words) {
    GstWebRTCRTPTransceiver *transceiver;
    gst_init(&count, &words);
    if (count != 4)
        g_error("write: sender CONTROLLER SECONDS FOLDER");
    if (!(weircc = gst_element_factory_make("weircc", NULL)))
        g_error("no element weircc: run `make install-gst`, or set GST_PLUGIN_PATH");
    gst_object_ref_sink(weircc);
    start_us = g_get_monotonic_time();
    offer_path = g_build_filename(words[3], "offer.sdp", NULL);
    answer_path = g_build_filename(words[3], "answer.sdp", NULL);
    loop = g_main_loop_new(NULL, FALSE);
    GstElement *pipeline = gst_parse_launch(PIPELINE, NULL);
    GstElement *encoder = gst_bin_get_by_name(GST_BIN(pipeline), "encoder");
    g_object_set(weircc, "algorithm", words[1], "encoder", encoder, NULL);

    webrtc = gst_bin_get_by_name(GST_BIN(pipeline), "webrtc");
    /* Retransmissions; without them a lost packet freezes the picture until the next key frame. */
    g_signal_emit_by_name(webrtc, "get-transceiver", 0, &transceiver);
    g_object_set(transceiver, "do-nack", TRUE, NULL);
    gst_object_unref(transceiver);
    g_signal_connect(webrtc, "request-aux-sender", G_CALLBACK(on_request_aux_sender), NULL);
    g_signal_connect(webrtc, "notify::ice-gathering-state", G_CALLBACK(on_gathering_state), NULL);
    g_signal_connect(webrtc, "on-negotiation-needed", G_CALLBACK(on_negotiation_needed), NULL);
    g_timeout_add(100, look_for_answer, NULL);
    g_timeout_add(1000, print_target, NULL);
    g_timeout_add(atof(words[2]) * 1000, stop, NULL);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    g_main_loop_run(loop);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    return 0;
}
