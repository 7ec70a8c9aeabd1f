/* Receives what `sender` sends, and reports by RTCP what arrived and when.
 *
 *     receiver 10.45.0.2:5004
 *
 * It prints a line a second: what it received. */
#include "common.h"

static weir_receiver *new_receiver(void) {
    weir_receiver_config config;
    weir_receiver *receiver;
    check(weir_receiver_config_init(&config, sizeof config), "weir_receiver_config_init");
    config.ssrc = RECEIVER_SSRC;
    config.transport_sequence_number_id = NUMBER_ID;
    config.random_seed = (uint64_t)getpid();
    check(weir_receiver_new(clock_ns(), &config, &receiver), "weir_receiver_new");
    return receiver;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "write: receiver ADDRESS:PORT\n");
        return 2;
    }
    struct sockaddr_in here = address_of(argv[1]), sender = {0};
    socklen_t sender_size = 0;
    weir_receiver *receiver = new_receiver();
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    if (udp < 0 || bind(udp, (struct sockaddr *)&here, sizeof here) != 0) {
        perror("bind");
        return 1;
    }
    int64_t start_ns = clock_ns(), next_line_ns = start_ns + SECOND_NS, received = 0;
    uint8_t buffer[DATAGRAM];
    for (;;) {
        int64_t now_ns = clock_ns(), due_ns;
        weir_bytes rtcp;
        check(weir_receiver_on_timeout(receiver, now_ns), "weir_receiver_on_timeout");
        /* Feedback that the network loses is as good as feedback that could not be sent. */
        while (weir_receiver_next_rtcp(receiver, &rtcp) == WEIR_STATUS_OK)
            if (sender_size > 0) (void)!sendto(udp, rtcp.data, rtcp.length, 0, (struct sockaddr *)&sender, sender_size);
        if (next_line_ns <= now_ns) {
            printf("time_s %.0f received_kbps %.0f\n", (double)(now_ns - start_ns) / 1e9, (double)received * 8 / 1e3);
            fflush(stdout);
            next_line_ns += SECOND_NS;
            received = 0;
        }
        check(weir_receiver_next_timeout(receiver, &due_ns), "weir_receiver_next_timeout");
        wait_until(udp, due_ns < next_line_ns ? due_ns : next_line_ns);
        struct sockaddr_in from;
        socklen_t from_size = sizeof from;
        ssize_t length = recvfrom(udp, buffer, sizeof buffer, MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);
        if (length < 0) continue;
        sender = from;
        sender_size = from_size;
        /* Anybody may send anything to a port: what is neither RTP nor RTCP is passed over. */
        if (weir_is_rtcp(buffer, (size_t)length)) {
            (void)weir_receiver_on_rtcp(receiver, clock_ns(), buffer, (size_t)length);
        } else if (weir_receiver_on_rtp(receiver, clock_ns(), buffer, (size_t)length, 0) == WEIR_STATUS_OK) {
            received += length;
        }
    }
}
