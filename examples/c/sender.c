/* Sends made-up video over UDP at the rate that a congestion controller allows.
 *
 *     sender 10.45.0.2:5004 gcc 40
 *
 * It prints a line a second: the target bitrate, and what it sent. */
#include "common.h"

enum { HEADER = 24, PACKET_MAX = 1200, FRAME_PACKETS = 64, OVERHEAD = 28 };

/* 25 pictures a second. */
#define FRAME_NS (SECOND_NS / 25)

static void put_u16(uint8_t *bytes, uint16_t value) {
    bytes[0] = (uint8_t)(value >> 8);
    bytes[1] = (uint8_t)value;
}

static void put_u32(uint8_t *bytes, uint32_t value) {
    put_u16(bytes, (uint16_t)(value >> 16));
    put_u16(bytes + 2, (uint16_t)value);
}

/* Writes an RTP header with room for two extensions. The sender fills them in when the packet
 * leaves. */
static void write_header(uint8_t *bytes, int marker, uint16_t number, uint32_t timestamp) {
    memset(bytes, 0, HEADER);
    bytes[0] = 0x90; /* version 2, with extensions */
    bytes[1] = (uint8_t)((marker ? 0x80 : 0) | 96);
    put_u16(bytes + 2, number);
    put_u32(bytes + 4, timestamp);
    put_u32(bytes + 8, SENDER_SSRC);
    put_u16(bytes + 12, 0xbede); /* one-byte extension headers, two words */
    put_u16(bytes + 14, 2);
    bytes[16] = NUMBER_ID << 4 | 1; /* two bytes */
    bytes[19] = TIME_ID << 4 | 2;   /* three bytes */
}

/* Queues the packets of a frame that is as large as the bitrate asks for. */
static void enqueue_frame(weir_sender *sender, int64_t now_ns, uint16_t *number) {
    static uint8_t bytes[FRAME_PACKETS][PACKET_MAX];
    weir_bytes packets[FRAME_PACKETS];
    weir_target target = {.struct_size = sizeof target};
    check(weir_sender_target(sender, &target), "weir_sender_target");
    int64_t left = (int64_t)(target.source_bitrate_bps / 8) * FRAME_NS / SECOND_NS;
    size_t count = 0;
    while (left > 0 && count < FRAME_PACKETS) {
        int64_t size = left < PACKET_MAX + OVERHEAD ? left : PACKET_MAX + OVERHEAD;
        left -= size;
        packets[count].data = bytes[count];
        packets[count].length = size > HEADER + OVERHEAD ? (size_t)size - OVERHEAD : HEADER;
        write_header(bytes[count], left == 0, (*number)++, (uint32_t)(now_ns / 1000000 * 90));
        count++;
    }
    check(weir_sender_enqueue(sender, now_ns, packets, count), "weir_sender_enqueue");
}

/* Sends what may leave now. Returns the number of bytes. */
static int64_t send_due(weir_sender *sender, int64_t now_ns, int socket) {
    weir_packet packet = {.struct_size = sizeof packet};
    weir_bytes rtcp;
    int64_t bytes = 0;
    check(weir_sender_on_timeout(sender, now_ns), "weir_sender_on_timeout");
    /* A receiver that is not there yet refuses datagrams. They are lost like any others. */
    while (weir_sender_next_rtcp(sender, &rtcp) == WEIR_STATUS_OK)
        (void)!send(socket, rtcp.data, rtcp.length, 0);
    while (weir_sender_next_packet(sender, now_ns, &packet) == WEIR_STATUS_OK)
        if (send(socket, packet.data, packet.length, 0) > 0) bytes += (int64_t)packet.length;
    return bytes;
}

static weir_sender *new_sender(const char *controller) {
    weir_settings settings;
    weir_sender_config config;
    weir_sender *sender;
    check(weir_settings_init(&settings, sizeof settings), "weir_settings_init");
    check(weir_sender_config_init(&config, sizeof config), "weir_sender_config_init");
    settings.max_bitrate_bps = 5000000;
    config.ssrc = SENDER_SSRC;
    config.transport_sequence_number_id = NUMBER_ID;
    config.abs_send_time_id = TIME_ID;
    config.random_seed = (uint64_t)getpid();
    check(weir_sender_new(clock_ns(), controller, &settings, &config, &sender), controller);
    return sender;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "write: sender ADDRESS:PORT CONTROLLER SECONDS\n");
        return 2;
    }
    struct sockaddr_in address = address_of(argv[1]);
    weir_sender *sender = new_sender(argv[2]);
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    if (udp < 0 || connect(udp, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("connect");
        return 1;
    }
    int64_t start_ns = clock_ns(), end_ns = start_ns + atoi(argv[3]) * SECOND_NS;
    int64_t next_frame_ns = start_ns, next_line_ns = start_ns + SECOND_NS, sent = 0;
    uint16_t number = 0;
    uint8_t buffer[DATAGRAM];
    for (int64_t now_ns; (now_ns = clock_ns()) < end_ns;) {
        if (next_frame_ns <= now_ns) {
            next_frame_ns += FRAME_NS;
            enqueue_frame(sender, now_ns, &number);
        }
        sent += send_due(sender, now_ns, udp);
        if (next_line_ns <= now_ns) {
            weir_target target = {.struct_size = sizeof target};
            check(weir_sender_target(sender, &target), "weir_sender_target");
            printf("time_s %.0f target_kbps %.0f sent_kbps %.0f\n", (double)(now_ns - start_ns) / 1e9,
                   (double)target.bitrate_bps / 1e3, (double)sent * 8 / 1e3);
            fflush(stdout);
            next_line_ns += SECOND_NS;
            sent = 0;
        }
        int64_t due_ns;
        check(weir_sender_next_timeout(sender, &due_ns), "weir_sender_next_timeout");
        wait_until(udp, due_ns < next_frame_ns ? due_ns : next_frame_ns);
        ssize_t length = recv(udp, buffer, sizeof buffer, MSG_DONTWAIT);
        /* Anybody may send anything to a port: what is not RTCP is passed over. */
        if (length > 0) (void)weir_sender_on_rtcp(sender, clock_ns(), buffer, (size_t)length);
    }
    weir_sender_free(sender);
    close(udp);
    return 0;
}
