/* A sender and a receiver of libweir over a path in memory, under every controller, and what the
 * library answers to NULL and to garbage. Prints a line for each controller; the exit code is 1 if
 * something is wrong. tests/it/c_programs.rs runs it, also under sanitizers and valgrind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);             \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

enum { MS = 1000000, DELAY_MS = 20, SLOTS = 4096, RTP_HEADER = 24, PACKET = 1200 };

struct in_flight {
    int64_t arrival_ns;
    size_t length;
    uint8_t bytes[PACKET + 300];
};

/* A path with a fixed delay; every `loss`th packet is lost. */
struct path {
    struct in_flight slots[SLOTS];
    unsigned first, end, count, loss;
};

static void put_on(struct path *path, int64_t now_ns, const uint8_t *bytes, size_t length) {
    path->count++;
    if (path->loss != 0 && path->count % path->loss == 0) return;
    CHECK(path->end - path->first < SLOTS && length <= sizeof path->slots[0].bytes);
    struct in_flight *slot = &path->slots[path->end++ % SLOTS];
    slot->arrival_ns = now_ns + (int64_t)DELAY_MS * MS;
    slot->length = length;
    memcpy(slot->bytes, bytes, length);
}

static const struct in_flight *take_off(struct path *path, int64_t now_ns) {
    if (path->first == path->end || path->slots[path->first % SLOTS].arrival_ns > now_ns) return NULL;
    return &path->slots[path->first++ % SLOTS];
}

/* An RTP packet with room for the transport-wide sequence number (id 1) and the send time (id 2). */
static size_t write_rtp(uint8_t *bytes, uint16_t number, uint32_t timestamp, size_t payload) {
    const uint8_t head[RTP_HEADER] = {
        0x90, 96, (uint8_t)(number >> 8), (uint8_t)number,
        (uint8_t)(timestamp >> 24), (uint8_t)(timestamp >> 16), (uint8_t)(timestamp >> 8), (uint8_t)timestamp,
        0, 0, 0, 1, 0xbe, 0xde, 0, 2, 0x11, 0, 0, 0x22, 0, 0, 0, 0,
    };
    memcpy(bytes, head, sizeof head);
    memset(bytes + RTP_HEADER, 0xaa, payload);
    return RTP_HEADER + payload;
}

static void drain(weir_sender *sender, struct path *up, int64_t now_ns) {
    weir_packet packet = {0};
    packet.struct_size = sizeof packet;
    weir_bytes rtcp;
    CHECK(weir_sender_on_timeout(sender, now_ns) == WEIR_STATUS_OK);
    while (weir_sender_next_rtcp(sender, &rtcp) == WEIR_STATUS_OK) put_on(up, now_ns, rtcp.data, rtcp.length);
    weir_status status;
    while ((status = weir_sender_next_packet(sender, now_ns, &packet)) == WEIR_STATUS_OK)
        put_on(up, now_ns, packet.data, packet.length);
    CHECK(status == WEIR_STATUS_NONE);
}

static void call(const char *name, uint32_t format) {
    static struct path up, down;
    memset(&up, 0, sizeof up);
    memset(&down, 0, sizeof down);
    up.loss = 200;
    weir_settings settings;
    weir_sender_config config;
    weir_receiver_config receiver_config;
    CHECK(weir_settings_init(&settings, sizeof settings) == WEIR_STATUS_OK);
    CHECK(weir_sender_config_init(&config, sizeof config) == WEIR_STATUS_OK);
    CHECK(weir_receiver_config_init(&receiver_config, sizeof receiver_config) == WEIR_STATUS_OK);
    config.abs_send_time_id = 2;
    receiver_config.feedback = format;
    weir_sender *sender;
    weir_receiver *receiver;
    CHECK(weir_sender_new(0, name, &settings, &config, &sender) == WEIR_STATUS_OK);
    CHECK(weir_receiver_new(0, &receiver_config, &receiver) == WEIR_STATUS_OK);

    weir_target target = {0};
    target.struct_size = sizeof target;
    weir_metrics metrics;
    metrics.struct_size = sizeof metrics;
    static uint8_t frame[16][RTP_HEADER + PACKET];
    weir_bytes packets[16];
    uint16_t number = 0;
    unsigned changes = 0;
    const struct in_flight *arrived;
    for (int64_t ms = 0; ms < 10000; ms++) {
        int64_t now_ns = ms * MS;
        if (ms % 40 == 0) {
            CHECK(weir_sender_target(sender, &target) == WEIR_STATUS_OK);
            size_t left = (size_t)(target.source_bitrate_bps / 8 * 40 / 1000), count = 0;
            while (left > 0 && count < 16) {
                size_t payload = left > 1000 ? 1000 : left;
                packets[count].length = write_rtp(frame[count], number++, (uint32_t)ms * 90, payload);
                packets[count].data = frame[count];
                left -= payload;
                count++;
            }
            CHECK(weir_sender_enqueue(sender, now_ns, packets, count) == WEIR_STATUS_OK);
        }
        drain(sender, &up, now_ns);
        while ((arrived = take_off(&up, now_ns)) != NULL) {
            weir_status status = weir_is_rtcp(arrived->bytes, arrived->length)
                ? weir_receiver_on_rtcp(receiver, now_ns, arrived->bytes, arrived->length)
                : weir_receiver_on_rtp(receiver, now_ns, arrived->bytes, arrived->length, 0);
            CHECK(status == WEIR_STATUS_OK);
        }
        CHECK(weir_receiver_on_timeout(receiver, now_ns) == WEIR_STATUS_OK);
        weir_bytes rtcp;
        while (weir_receiver_next_rtcp(receiver, &rtcp) == WEIR_STATUS_OK) put_on(&down, now_ns, rtcp.data, rtcp.length);
        while ((arrived = take_off(&down, now_ns)) != NULL)
            CHECK(weir_sender_on_rtcp(sender, now_ns, arrived->bytes, arrived->length) == WEIR_STATUS_OK);
        uint64_t from, to;
        while (weir_sender_take_change(sender, &from, &to, &metrics) == WEIR_STATUS_OK) {
            CHECK(from != to && metrics.reason <= WEIR_REASON_FEEDBACK_LOST && metrics.reason_text[0] != 0);
            changes++;
        }
    }
    CHECK(weir_sender_target(sender, &target) == WEIR_STATUS_OK);
    CHECK(weir_sender_metrics(sender, &metrics) == WEIR_STATUS_OK);
    printf("%s format %u: target %llu bit/s, %u changes, state %s, rtt %lld ns\n", name, format,
           (unsigned long long)target.bitrate_bps, changes, metrics.state, (long long)metrics.rtt_ns);
    CHECK(changes > 0);
    CHECK(target.bitrate_bps > 400000);
    weir_sender_free(sender);
    weir_receiver_free(receiver);
}

static void garbage(void) {
    weir_settings settings;
    weir_sender_config config;
    weir_receiver_config receiver_config;
    weir_controller *controller = (weir_controller *)&settings;
    weir_sender *sender;
    weir_receiver *receiver;
    CHECK(weir_settings_init(NULL, sizeof settings) == WEIR_STATUS_NULL_POINTER);
    CHECK(weir_settings_init(&settings, 7) == WEIR_STATUS_STRUCT_SIZE);
    CHECK(weir_settings_init(&settings, sizeof settings) == WEIR_STATUS_OK);
    CHECK(weir_sender_config_init(&config, sizeof config) == WEIR_STATUS_OK);
    CHECK(weir_receiver_config_init(&receiver_config, sizeof receiver_config) == WEIR_STATUS_OK);

    CHECK(weir_controller_new("nobody", &settings, &controller) == WEIR_STATUS_UNKNOWN_ALGORITHM);
    CHECK(controller == NULL);
    CHECK(weir_controller_new(NULL, &settings, &controller) == WEIR_STATUS_NULL_POINTER);
    CHECK(weir_controller_new("nada", NULL, &controller) == WEIR_STATUS_NULL_POINTER);
    CHECK(weir_controller_new("nada", &settings, NULL) == WEIR_STATUS_NULL_POINTER);
    settings.min_bitrate_bps = 0;
    CHECK(weir_controller_new("nada", &settings, &controller) == WEIR_STATUS_LIMITS);
    settings.min_bitrate_bps = 1000;
    settings.ecn = 77;
    CHECK(weir_controller_new("nada", &settings, &controller) == WEIR_STATUS_INVALID_ARGUMENT);
    settings.ecn = WEIR_ECN_MODE_L4S;
    settings.priority = -1.0;
    CHECK(weir_controller_new("nada", &settings, &controller) == WEIR_STATUS_INVALID_ARGUMENT);
    settings.priority = 1.0;
    settings.struct_size = (size_t)-1;
    CHECK(weir_controller_new("nada", &settings, &controller) == WEIR_STATUS_STRUCT_SIZE);
    settings.struct_size = sizeof settings;
    CHECK(weir_controller_new("nada", &settings, &controller) == WEIR_STATUS_OK);

    weir_sent_packet sent = {0};
    CHECK(weir_controller_on_packet_sent(controller, 0, &sent) == WEIR_STATUS_STRUCT_SIZE);
    sent.struct_size = sizeof sent;
    sent.is_padding = 2;
    CHECK(weir_controller_on_packet_sent(controller, 0, &sent) == WEIR_STATUS_INVALID_ARGUMENT);
    sent.is_padding = 0;
    CHECK(weir_controller_on_packet_sent(controller, 0, &sent) == WEIR_STATUS_OK);
    weir_packet_report reports[2] = {{.sequence_number = 5}, {.sequence_number = 5}};
    weir_feedback feedback = {.struct_size = sizeof feedback, .packets = reports, .packet_count = 2};
    CHECK(weir_controller_on_feedback(controller, 0, &feedback) == WEIR_STATUS_INVALID_ARGUMENT);
    feedback.packet_count = (size_t)-1;
    CHECK(weir_controller_on_feedback(controller, 0, &feedback) == WEIR_STATUS_INVALID_ARGUMENT);
    feedback.packets = NULL;
    feedback.packet_count = 1;
    CHECK(weir_controller_on_feedback(controller, 0, &feedback) == WEIR_STATUS_NULL_POINTER);
    CHECK(weir_controller_next_timeout(controller, NULL) == WEIR_STATUS_NULL_POINTER);
    CHECK(weir_controller_target(controller, NULL) == WEIR_STATUS_NULL_POINTER);
    CHECK(weir_controller_on_timeout(NULL, 0) == WEIR_STATUS_NULL_POINTER);
    weir_controller_free(controller);
    weir_controller_free(NULL);

    config.padding_payload_type = 128;
    CHECK(weir_sender_new(0, "gcc", &settings, &config, &sender) == WEIR_STATUS_INVALID_ARGUMENT);
    config.padding_payload_type = 127;
    config.clock_rate_hz = 0;
    CHECK(weir_sender_new(0, "gcc", &settings, &config, &sender) == WEIR_STATUS_INVALID_ARGUMENT);
    config.clock_rate_hz = 90000;
    CHECK(weir_sender_new(0, "gcc", &settings, &config, &sender) == WEIR_STATUS_OK);
    uint8_t bytes[64];
    memset(bytes, 0x5a, sizeof bytes);
    weir_bytes packet = {bytes, sizeof bytes};
    CHECK(weir_sender_enqueue(sender, 0, &packet, 1) == WEIR_STATUS_NOT_RTP);
    uint8_t plain[20] = {0x80, 96};
    packet.data = plain;
    packet.length = sizeof plain;
    CHECK(weir_sender_enqueue(sender, 0, &packet, 1) == WEIR_STATUS_NO_EXTENSION);
    packet.data = NULL;
    CHECK(weir_sender_enqueue(sender, 0, &packet, 1) == WEIR_STATUS_NULL_POINTER);
    packet.length = (size_t)-1;
    CHECK(weir_sender_enqueue(sender, 0, &packet, 1) == WEIR_STATUS_INVALID_ARGUMENT);
    CHECK(weir_sender_enqueue(sender, 0, NULL, 0) == WEIR_STATUS_OK);
    CHECK(weir_sender_on_rtcp(sender, 0, bytes, sizeof bytes) == WEIR_STATUS_NOT_RTCP);
    weir_packet next = {0};
    CHECK(weir_sender_next_packet(sender, 0, &next) == WEIR_STATUS_STRUCT_SIZE);
    next.struct_size = sizeof next;
    CHECK(weir_sender_next_packet(sender, 0, &next) == WEIR_STATUS_NONE);
    CHECK(weir_sender_take_change(sender, NULL, NULL, NULL) == WEIR_STATUS_NONE);
    weir_sender_free(sender);

    receiver_config.transport_sequence_number_id = 0;
    CHECK(weir_receiver_new(0, &receiver_config, &receiver) == WEIR_STATUS_INVALID_ARGUMENT);
    receiver_config.transport_sequence_number_id = 1;
    CHECK(weir_receiver_new(0, &receiver_config, &receiver) == WEIR_STATUS_OK);
    CHECK(weir_receiver_on_rtp(receiver, 0, bytes, sizeof bytes, 0) == WEIR_STATUS_NOT_RTP);
    CHECK(weir_receiver_on_rtp(receiver, 0, bytes, sizeof bytes, 4) == WEIR_STATUS_INVALID_ARGUMENT);
    CHECK(weir_receiver_set_feedback(receiver, 0, 9) == WEIR_STATUS_INVALID_ARGUMENT);
    weir_receiver_free(receiver);

    CHECK(strcmp(weir_status_text(WEIR_STATUS_OK), "success") == 0);
    CHECK(strcmp(weir_status_text(12345), "unknown status") == 0);
    CHECK(weir_is_rtcp(NULL, 9) == 0);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH);
    CHECK(strcmp(weir_version(), version) == 0);
}

int main(void) {
    garbage();
    const char *name;
    for (size_t index = 0; (name = weir_algorithm_name(index)) != NULL; index++) {
        call(name, WEIR_FEEDBACK_FORMAT_TWCC);
        call(name, WEIR_FEEDBACK_FORMAT_CCFB);
    }
    return 0;
}
