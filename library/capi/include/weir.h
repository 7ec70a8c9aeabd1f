/* libweir: congestion control of real-time media. Written by cbindgen from the crate weir-capi.
 *
 * There are three levels:
 *
 *   weir_controller   a controller alone: sent packets and feedback in, target bitrate out
 *   weir_sender       RTP packets and RTCP datagrams in, paced RTP and sender reports out
 *   weir_receiver     RTP packets in, feedback and reports out
 *
 * The library has no clock, no thread and no socket.
 *
 * Time. `now_ns` is the time in nanoseconds since any origin, from a monotonic clock. If it lies
 * before that of an earlier call with the same handle, the earlier call's time is used.
 *
 * Threads. The library has no state of its own: handles are independent of each other. A handle may
 * move from one thread to another, but only one call may use it at a time. A program that shares a
 * handle between threads puts a mutex around it. Functions without a handle may be called by any
 * thread at any time. No function blocks or waits. None may be called in a signal handler, because
 * functions may allocate memory.
 *
 * Errors. Each function that can fail returns a weir_status: zero for success, a negative number for
 * an error, WEIR_STATUS_NONE if there is nothing to return. weir_status_text gives it as text.
 * NULL and numbers out of range are errors. Pointers that are not NULL must be valid; a handle must
 * come from the `new` function of its type, and must not be used after it was freed.
 *
 * Memory. A handle allocates while its queues and histories grow to the size that the flow needs.
 * After that no call allocates for a packet. Bytes that the library hands out are valid until the
 * next call with the same handle. The library copies what it needs from bytes that it gets.
 *
 * Structs that begin with `struct_size` may get new members at the end in later versions. Set
 * struct_size to the sizeof of the struct, or call the struct's init function where there is one.
 */


#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

// A time that does not exist: a packet that has not arrived, a delay not measured yet.
#define WEIR_NO_TIME INT64_MIN

// A deadline that never comes.
#define WEIR_NEVER INT64_MAX

// A number that does not exist: no limit, no congestion window, a bitrate not measured yet.
#define WEIR_NO_VALUE UINT64_MAX

// The packet belongs to no probe, or no probe is requested. Probes are numbered from 1.
#define WEIR_NO_PROBE 0

// Maximum number of bytes in a packet or datagram.
#define WEIR_MAX_PACKET 65535

// Maximum number of packets in one call.
#define WEIR_MAX_PACKETS 65536

// Bytes of a name in `weir_metrics`, including the NUL at its end.
#define WEIR_NAME_SIZE 32

// Number of elements of `signals` in `weir_metrics`.
#define WEIR_MAX_SIGNALS 16

// Result of a function. Zero is success; errors are negative. After an error nothing has changed,
// except where the function says otherwise.
enum weir_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  WEIR_STATUS_OK = 0,
  // Success, but there is nothing to return: no packet may leave now, no RTCP is left, the
  // target has not changed.
  WEIR_STATUS_NONE = 1,
  // A required pointer is NULL.
  WEIR_STATUS_NULL_POINTER = -1,
  // A number is outside its range, a pointer is not aligned, or a reserved byte is not zero.
  WEIR_STATUS_INVALID_ARGUMENT = -2,
  // `struct_size` is wrong. Set it to the `sizeof` of the struct, or call the struct's init
  // function. If the program was built with a newer header, it uses a member that this library
  // does not have.
  WEIR_STATUS_STRUCT_SIZE = -3,
  // No controller has this name.
  WEIR_STATUS_UNKNOWN_ALGORITHM = -4,
  // The bitrates violate 0 < min <= start <= max.
  WEIR_STATUS_LIMITS = -5,
  // The bytes are not an RTP packet.
  WEIR_STATUS_NOT_RTP = -6,
  // The bytes are not RTCP, at least from some point on. The packets before it were used.
  WEIR_STATUS_NOT_RTCP = -7,
  // The RTP packet has no room for a header extension that the sender fills in.
  WEIR_STATUS_NO_EXTENSION = -8,
  // A defect of the library; a message is on stderr. The handle can only be freed. Each other
  // call with it returns this status.
  WEIR_STATUS_INTERNAL = -9,
  // The RTP packet has the SSRC or the payload type of padding packets: choose others for them
  // in the configuration.
  WEIR_STATUS_PADDING_CLASH = -10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_status weir_status;
#else
typedef int32_t weir_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How bursts of a queue follow each other.
enum weir_burst
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Sending may always be ahead of the pacing rate by the burst time. Once it is used up, a
  // queue leaves packet by packet.
  WEIR_BURST_AHEAD = 0,
  // After a burst, wait until the pacing budget has recovered. A queue leaves burst by burst.
  WEIR_BURST_WHOLE = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_burst weir_burst;
#else
typedef uint32_t weir_burst;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Why a target bitrate changed. The numbers never change.
enum weir_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // No feedback has changed the target yet.
  WEIR_REASON_START = 0,
  // Fast growth: no sign of congestion, capacity not known.
  WEIR_REASON_RAMP_UP = 1,
  // Careful growth near the known capacity.
  WEIR_REASON_INCREASE = 2,
  // The delay gradient says that the queue grows.
  WEIR_REASON_OVER_USE = 3,
  // The queuing delay is above the controller's target delay.
  WEIR_REASON_QUEUING_DELAY = 4,
  // Packets were lost.
  WEIR_REASON_LOSS = 5,
  // Packets were marked Congestion Experienced.
  WEIR_REASON_ECN = 6,
  // A probe found more capacity.
  WEIR_REASON_PROBE = 7,
  // The receiver set or lifted its limit.
  WEIR_REASON_RECEIVER_LIMIT = 8,
  // The coupled flows of the sender share their rate in another way.
  WEIR_REASON_COUPLED = 9,
  // The sender's own queue is too long.
  WEIR_REASON_SEND_QUEUE = 10,
  // The media source sends less than the target allows.
  WEIR_REASON_APPLICATION_LIMITED = 11,
  // A flow that does not react to delay keeps the queue full: the rate follows losses instead.
  WEIR_REASON_COMPETING = 12,
  // The sender lets the queue drain for a moment, to measure the delay of the empty path.
  WEIR_REASON_BASE_TEST = 13,
  // No feedback arrives.
  WEIR_REASON_FEEDBACK_LOST = 14,
  // The flow has most of a link that others want, and leaves room for them.
  WEIR_REASON_GIVING_WAY = 15,
  // A policy outside the library, such as one that is being trained, chose another bitrate.
  WEIR_REASON_POLICY = 16,
  // The application changed the range of the target bitrate.
  WEIR_REASON_LIMITS = 17,
  // The packets take another route.
  WEIR_REASON_NEW_ROUTE = 18,
  // A reason that this header does not know. `reason_text` names it.
  WEIR_REASON_OTHER = 255,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_reason weir_reason;
#else
typedef uint32_t weir_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How a sender uses ECN.
enum weir_ecn_mode
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Packets are Not-ECT.
  WEIR_ECN_MODE_OFF = 0,
  // Packets are ECT(0): a mark means the same as a loss.
  WEIR_ECN_MODE_CLASSIC = 1,
  // Packets are ECT(1): marks are frequent, and the controller reacts to their share.
  WEIR_ECN_MODE_L4S = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_ecn_mode weir_ecn_mode;
#else
typedef uint32_t weir_ecn_mode;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Where the arrival times of a feedback report come from.
enum weir_arrival_times
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The receiver measured the arrival of each packet.
  WEIR_ARRIVAL_TIMES_MEASURED = 0,
  // Derived from RTCP receiver reports: send time plus round-trip time.
  WEIR_ARRIVAL_TIMES_ROUND_TRIP = 1,
  // The times at which the acknowledgements came, on the sender's clock, as in QUIC.
  WEIR_ARRIVAL_TIMES_ACKNOWLEDGED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_arrival_times weir_arrival_times;
#else
typedef uint32_t weir_arrival_times;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// How a receiver reports the packets that arrived.
enum weir_feedback_format
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Transport-wide feedback: `transport-cc` in SDP.
  WEIR_FEEDBACK_FORMAT_TWCC = 0,
  // Congestion control feedback of RFC 8888: `ack ccfb` in SDP.
  WEIR_FEEDBACK_FORMAT_CCFB = 1,
  // Only RTCP receiver reports.
  WEIR_FEEDBACK_FORMAT_RECEIVER_REPORTS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_feedback_format weir_feedback_format;
#else
typedef uint32_t weir_feedback_format;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What a packet carries. It decides when the packet leaves, and what is left to the encoder.
enum weir_packet_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Pictures, and everything else: in order, at the pacing rate.
  WEIR_PACKET_KIND_VIDEO = 0,
  // A packet that is sent again: it leaves before the pictures that wait.
  WEIR_PACKET_KIND_REPAIR = 1,
  // Sound: it leaves at once, before everything else.
  WEIR_PACKET_KIND_AUDIO = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_packet_kind weir_packet_kind;
#else
typedef uint32_t weir_packet_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What the receiver asks for.
enum weir_request_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It misses the packet `sequence_number` (NACK): queue it again as `WEIR_PACKET_KIND_REPAIR`,
  // if it is still at hand.
  WEIR_REQUEST_KIND_RETRANSMIT = 1,
  // It cannot go on without a key frame (PLI or FIR): let the encoder make one.
  WEIR_REQUEST_KIND_KEY_FRAME = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum weir_request_kind weir_request_kind;
#else
typedef uint32_t weir_request_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A congestion controller.
typedef struct weir_controller weir_controller;

// The receiving half of a media flow.
typedef struct weir_receiver weir_receiver;

// The sending half of a media flow.
typedef struct weir_sender weir_sender;

// Configuration of a controller. Call `weir_settings_init`, then change what you need.
typedef struct {
  // `sizeof(weir_settings)`; the init function sets it.
  size_t struct_size;
  // The lowest target bitrate, in bit/s, above zero. The default is 150,000.
  uint64_t min_bitrate_bps;
  // The target bitrate before the first feedback, in bit/s. The default is 300,000.
  uint64_t start_bitrate_bps;
  // The highest target bitrate, in bit/s. The default is 2,500,000.
  uint64_t max_bitrate_bps;
  // Weight relative to other flows at the bottleneck, above zero. The default is 1.
  double priority;
  // A `weir_ecn_mode`. The default is off. Controllers without L4S use classic ECN instead.
  uint32_t ecn;
  // 1: tolerate random packet loss, if the controller has this option. The default is 0.
  uint8_t tolerate_random_loss;
  // 1: resist starvation by loss-based flows, if the controller has this option. The default is
  // 0.
  uint8_t compete_with_tcp;
  // 1: repeat probes while the source sends less than the target. The default is 1.
  uint8_t probe_when_limited;
  // Zero.
  uint8_t reserved;
} weir_settings;

// A packet that left the pacer. Set `struct_size` to `sizeof(weir_sent_packet)`.
typedef struct {
  // `sizeof(weir_sent_packet)`.
  size_t struct_size;
  // Transport-wide sequence number without wrapping: increases by one with each packet.
  int64_t sequence_number;
  // Size in bytes. Count the same headers everywhere; IP and UDP headers fill the path too.
  uint64_t size_bytes;
  // Bytes left in the send queue after this packet.
  uint64_t queued_bytes;
  // Number of the probe to which the packet belongs, or `WEIR_NO_PROBE`.
  uint64_t probe_id;
  // 1: the packet carries neither media nor repair of media.
  uint8_t is_padding;
  // Zero.
  uint8_t reserved[7];
} weir_sent_packet;

// What became of one packet. The layout never changes.
typedef struct {
  // As when it was sent.
  int64_t sequence_number;
  // As when it was sent.
  uint64_t size_bytes;
  // Time at which the packet left the pacer, in ns on the sender's clock.
  int64_t send_time_ns;
  // Time at which the packet arrived, in ns on the receiver's clock; `WEIR_NO_TIME` if the
  // receiver does not have it.
  int64_t arrival_time_ns;
  // As when it was sent.
  uint64_t probe_id;
  // The two ECN bits of the IP header on arrival: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
  uint8_t ecn;
  // 1: an earlier report called the packet lost, but it was only late.
  uint8_t is_recovered;
  // Zero.
  uint8_t reserved[6];
} weir_packet_report;

// The news in one feedback packet. Set `struct_size` to `sizeof(weir_feedback)`.
typedef struct {
  // `sizeof(weir_feedback)`.
  size_t struct_size;
  // The packets by increasing sequence number, each one once.
  const weir_packet_report *packets;
  // Number of packets, at most `WEIR_MAX_PACKETS`.
  size_t packet_count;
  // Number of feedback packets lost since the last report, if the format shows it.
  uint32_t missing_feedback;
  // A `weir_arrival_times`.
  uint32_t arrival_times;
  // 1: the arrival times are on another clock than those of the last report.
  uint8_t is_new_clock;
  // Zero.
  uint8_t reserved[7];
} weir_feedback;

// What the sender should do now. Set `struct_size` to `sizeof(weir_target)` before the call.
typedef struct {
  // `sizeof(weir_target)`.
  size_t struct_size;
  // Bitrate of the media, headers included, in bit/s. Always within the limits.
  uint64_t bitrate_bps;
  // The same after congestion window push-back, in bit/s: lower while too much is in flight. For
  // encoders that can drop frames.
  uint64_t source_bitrate_bps;
  // Rate at which queued packets leave, in bit/s.
  uint64_t pacing_rate_bps;
  // How far sending may run ahead of the pacing rate, in ns at that rate.
  int64_t burst_time_ns;
  // Bytes that may be in flight; `WEIR_NO_VALUE` if the controller has no window.
  uint64_t congestion_window_bytes;
  // Bytes that may be sent now; `WEIR_NO_VALUE` if the controller has no window. Any packet may
  // leave while this is above zero.
  uint64_t available_bytes;
  // Padding is sent while the send rate is below this rate, in bit/s. Zero means no padding.
  uint64_t padding_rate_bps;
  // Number of the probe to send; `WEIR_NO_PROBE` if there is none. It starts when a new number
  // appears.
  uint64_t probe_id;
  // Rate of the probe's packets, in bit/s.
  uint64_t probe_rate_bps;
  // Minimum number of bytes of the probe.
  uint64_t probe_size_bytes;
  // Minimum number of packets of the probe.
  uint32_t probe_packets;
  // A `weir_burst`.
  uint32_t burst;
} weir_target;

// A value specific to an algorithm.
typedef struct {
  // Its name, which contains the unit, such as `queuing_delay_ms`; ends with NUL.
  char name[WEIR_NAME_SIZE];
  // The value.
  double value;
} weir_signal;

// A snapshot of a controller's internals. Set `struct_size` to `sizeof(weir_metrics)` before the
// call.
typedef struct {
  // `sizeof(weir_metrics)`.
  size_t struct_size;
  // Round-trip time as the controller measures it, in ns, including the receiver's feedback
  // interval; `WEIR_NO_TIME` if unknown.
  int64_t rtt_ns;
  // Queuing delay as the controller estimates it, in ns; `WEIR_NO_TIME` if unknown.
  int64_t queuing_delay_ns;
  // Rate at which the receiver received data, in bit/s, computed from feedback; `WEIR_NO_VALUE`
  // if unknown.
  uint64_t acknowledged_bitrate_bps;
  // Loss ratio as the controller estimates it, 0 to 1.
  double loss_ratio;
  // A `weir_reason`: why the target bitrate last changed.
  uint32_t reason;
  // Number of elements of `signals` in use.
  uint32_t signal_count;
  // The reason as text, such as `over-use`; ends with NUL.
  char reason_text[WEIR_NAME_SIZE];
  // The controller's state, as its standard names it; ends with NUL.
  char state[WEIR_NAME_SIZE];
  // Values specific to the algorithm.
  weir_signal signals[WEIR_MAX_SIGNALS];
} weir_metrics;

// Configuration of a receiver. Call `weir_receiver_config_init`, then change what you need.
typedef struct {
  // `sizeof(weir_receiver_config)`; the init function sets it.
  size_t struct_size;
  // Any number. It spreads the times of receiver reports; give each receiver another one.
  uint64_t random_seed;
  // Time between TWCC or CCFB packets in ns, 1 ms to 10 s. The default is 100 ms; between 50 and
  // 200 ms is usual.
  int64_t interval_ns;
  // The receiver's own SSRC. The default is 3.
  uint32_t ssrc;
  // A `weir_feedback_format`. The default is TWCC.
  uint32_t feedback;
  // Clock rate of the RTP timestamps, in Hz. The default is 90,000.
  uint32_t clock_rate_hz;
  // As in `weir_sender_config`.
  uint8_t transport_sequence_number_id;
  // Zero.
  uint8_t reserved[3];
} weir_receiver_config;

// Bytes of somebody else: a packet or a datagram. Copy what a handle handed out before you pass it
// to the same handle.
typedef struct {
  // The first byte. May be NULL if the length is zero.
  const uint8_t *data;
  // Number of bytes, at most `WEIR_MAX_PACKET`.
  size_t length;
} weir_bytes;

// Configuration of a sender. Call `weir_sender_config_init`, then change what you need.
typedef struct {
  // `sizeof(weir_sender_config)`; the init function sets it.
  size_t struct_size;
  // Any number. It spreads the times of sender reports; give each sender another one. Equal
  // seeds and equal calls give equal results.
  uint64_t random_seed;
  // SSRC of the media stream. The default is 1.
  uint32_t ssrc;
  // SSRC of padding packets. Media must not use it: such packets are refused. The default is 2.
  uint32_t padding_ssrc;
  // Clock rate of the RTP timestamps, in Hz. The default is 90,000.
  uint32_t clock_rate_hz;
  // Bytes that other layers add to each RTP packet; they count towards the rate. The default is
  // 28, for IPv4 and UDP. Add the overhead of encryption.
  uint32_t overhead_bytes;
  // Id of the header extension with the transport-wide sequence number, which TWCC needs; zero
  // if the packets do not have it. The default is 1.
  uint8_t transport_sequence_number_id;
  // Id of the header extension with the absolute send time, which receivers need that answer
  // with REMB; zero if the packets do not have it. The default is zero.
  uint8_t abs_send_time_id;
  // Payload type of padding packets, at most 127. Media must not use it: such packets are
  // refused. The default is 127.
  uint8_t padding_payload_type;
  // 1: send sender reports, 0: the host sends its own. The default is 1.
  uint8_t sender_reports;
  // Zero.
  uint32_t reserved;
} weir_sender_config;

// A packet to be sent now. Set `struct_size` to `sizeof(weir_packet)`.
typedef struct {
  // `sizeof(weir_packet)`.
  size_t struct_size;
  // The RTP packet, with its header extensions filled in. It is valid until the next call with
  // the same sender.
  const uint8_t *data;
  // Number of bytes.
  size_t length;
  // Transport-wide sequence number without wrapping.
  int64_t sequence_number;
  // Number of the probe to which the packet belongs, or `WEIR_NO_PROBE`.
  uint64_t probe_id;
  // 1: the packet is padding that the sender made.
  uint8_t is_padding;
  // Zero.
  uint8_t reserved[7];
} weir_packet;

// A request of the receiver. Set `struct_size` to `sizeof(weir_request)`.
typedef struct {
  // `sizeof(weir_request)`.
  size_t struct_size;
  // A `weir_request_kind`.
  uint32_t kind;
  // The stream that it is about.
  uint32_t media_ssrc;
  // The packet that is missing; zero for a key frame.
  uint16_t sequence_number;
  // Zero.
  uint8_t reserved[6];
} weir_request;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Creates a controller. `name` is one of `weir_algorithm_name`. `settings` were filled by
// `weir_settings_init`. The new handle is written to `controller`; after an error, NULL.
weir_status weir_controller_new(const char *name,
                                const weir_settings *settings,
                                weir_controller **controller);

// Frees a controller. NULL is allowed.
void weir_controller_free(weir_controller *controller);

// The media source put `added_bytes` into the send queue, which now contains `queued_bytes`.
weir_status weir_controller_on_media_queued(weir_controller *controller,
                                            int64_t now_ns,
                                            uint64_t added_bytes,
                                            uint64_t queued_bytes);

// A packet left the pacer.
weir_status weir_controller_on_packet_sent(weir_controller *controller,
                                           int64_t now_ns,
                                           const weir_sent_packet *packet);

// A feedback report arrived from the receiver. The array is only read during the call.
weir_status weir_controller_on_feedback(weir_controller *controller,
                                        int64_t now_ns,
                                        const weir_feedback *feedback);

// A receiver report gave this round-trip time of the path, in ns.
weir_status weir_controller_on_round_trip_time(weir_controller *controller,
                                               int64_t now_ns,
                                               int64_t rtt_ns);

// The receiver set an upper limit of the bitrate (REMB), in bit/s. `WEIR_NO_VALUE` lifts it.
weir_status weir_controller_on_receiver_limit(weir_controller *controller,
                                              int64_t now_ns,
                                              uint64_t limit_bps);

// The application changed the range of the target bitrate, in bit/s: `0 < min <= start <= max`.
// What is known of the path stays known. The start counts from the next new route; 0 stands for
// 300,000, or what is nearest to it in the range.
weir_status weir_controller_set_limits(weir_controller *controller,
                                       int64_t now_ns,
                                       uint64_t min_bps,
                                       uint64_t start_bps,
                                       uint64_t max_bps);

// The most that the source could use now, in bit/s; `WEIR_NO_VALUE` for an unknown amount. A
// controller that probes does not probe far above it.
weir_status weir_controller_set_desired_bitrate(weir_controller *controller,
                                                int64_t now_ns,
                                                uint64_t desired_bps);

// Packets take another route from now on, for instance because the device left a Wi-Fi network.
// What was measured is forgotten, and the target is the start bitrate again. Do not pass on
// feedback on packets of the old route.
weir_status weir_controller_on_route_change(weir_controller *controller, int64_t now_ns);

// The coupled flows of this sender gave this flow a new share of their total rate, in bit/s.
weir_status weir_controller_on_shared_rate(weir_controller *controller,
                                           int64_t now_ns,
                                           uint64_t share_bps);

// Handles the timeout if it is due. A call before `weir_controller_next_timeout` does nothing.
weir_status weir_controller_on_timeout(weir_controller *controller, int64_t now_ns);

// Writes the time in ns at which `weir_controller_on_timeout` is due, or `WEIR_NEVER`.
weir_status weir_controller_next_timeout(const weir_controller *controller, int64_t *due_ns);

// Writes what the sender should do now.
weir_status weir_controller_target(const weir_controller *controller, weir_target *target);

// Writes the internal signals, for traces and reports.
weir_status weir_controller_metrics(const weir_controller *controller, weir_metrics *metrics);

// Fills the configuration with the defaults. `size` is `sizeof(weir_receiver_config)`.
weir_status weir_receiver_config_init(weir_receiver_config *config, size_t size);

// Creates a receiver that starts at `now_ns`. `config` was filled by its init function. The new
// handle is written to `receiver`; after an error, NULL.
weir_status weir_receiver_new(int64_t now_ns,
                              const weir_receiver_config *config,
                              weir_receiver **receiver);

// Frees a receiver. NULL is allowed.
void weir_receiver_free(weir_receiver *receiver);

// An RTP packet arrived. Its payload may be encrypted. `ecn_bits` are the two ECN bits of its IP
// header: 0 Not-ECT or unknown, 1 ECT(1), 2 ECT(0), 3 CE.
weir_status weir_receiver_on_rtp(weir_receiver *receiver,
                                 int64_t now_ns,
                                 const uint8_t *data,
                                 size_t length,
                                 uint8_t ecn_bits);

// An RTCP datagram arrived. It may contain any bytes. Sender reports are used; everything else is
// for the host to read.
weir_status weir_receiver_on_rtcp(weir_receiver *receiver,
                                  int64_t now_ns,
                                  const uint8_t *data,
                                  size_t length);

// Handles timeouts. RTCP that is due then waits for `weir_receiver_next_rtcp`. A call before
// `weir_receiver_next_timeout` does nothing.
weir_status weir_receiver_on_timeout(weir_receiver *receiver, int64_t now_ns);

// Takes the next RTCP datagram to send, or returns `WEIR_STATUS_NONE`. Its bytes are valid until
// the next call with the same receiver.
weir_status weir_receiver_next_rtcp(weir_receiver *receiver, weir_bytes *rtcp);

// Writes the time in ns at which `weir_receiver_on_timeout` is due.
weir_status weir_receiver_next_timeout(const weir_receiver *receiver, int64_t *due_ns);

// Switches to another `weir_feedback_format`. Earlier arrivals are first reported in the old
// format; that RTCP waits for `weir_receiver_next_rtcp`.
weir_status weir_receiver_set_feedback(weir_receiver *receiver, int64_t now_ns, uint32_t format);

// Whether a datagram on a port that carries both RTP and RTCP is RTCP: 1 if it is, 0 if it is RTP,
// anything else or NULL.
int32_t weir_is_rtcp(const uint8_t *data, size_t length);

// Fills the configuration with the defaults. `size` is `sizeof(weir_sender_config)`.
weir_status weir_sender_config_init(weir_sender_config *config, size_t size);

// Creates a sender that starts at `now_ns`. `name` is one of `weir_algorithm_name`. `settings` and
// `config` were filled by their init functions. The new handle is written to `sender`; after an
// error, NULL.
weir_status weir_sender_new(int64_t now_ns,
                            const char *name,
                            const weir_settings *settings,
                            const weir_sender_config *config,
                            weir_sender **sender);

// Frees a sender. NULL is allowed.
void weir_sender_free(weir_sender *sender);

// Copies the RTP packets of a picture to the end of the send queue. Pass all packets of a frame in
// one call. Each packet has the header extensions of the configuration; their values are filled in
// later. Sound that is passed here waits behind the pictures: use `weir_sender_enqueue_as`. After
// an error, none of the packets is queued.
weir_status weir_sender_enqueue(weir_sender *sender,
                                int64_t now_ns,
                                const weir_bytes *packets,
                                size_t count);

// Copies RTP packets to the front of the send queue, for retransmissions. Otherwise as
// `weir_sender_enqueue`.
weir_status weir_sender_enqueue_urgent(weir_sender *sender,
                                       int64_t now_ns,
                                       const weir_bytes *packets,
                                       size_t count);

// Copies RTP packets of this `weir_packet_kind` to the send queue: sound leaves at once, before
// repair and pictures. Otherwise as `weir_sender_enqueue`.
weir_status weir_sender_enqueue_as(weir_sender *sender,
                                   int64_t now_ns,
                                   uint32_t kind,
                                   const weir_bytes *packets,
                                   size_t count);

// Writes the next packet to `packet` if one may leave now, else returns `WEIR_STATUS_NONE`. Call
// it until it does, and send each packet at once.
weir_status weir_sender_next_packet(weir_sender *sender, int64_t now_ns, weir_packet *packet);

// An RTCP datagram arrived. It may contain any bytes. Feedback, reports and REMB are used. What
// the receiver asks for, NACK, PLI and FIR, waits for `weir_sender_next_request`.
weir_status weir_sender_on_rtcp(weir_sender *sender,
                                int64_t now_ns,
                                const uint8_t *data,
                                size_t length);

// Takes what the receiver asks for next, or returns `WEIR_STATUS_NONE`. The last 1,024 requests
// are kept.
weir_status weir_sender_next_request(weir_sender *sender, weir_request *request);

// The receiver limits the bitrate by signalling of the host's own, in bit/s; `WEIR_NO_VALUE` lifts
// the limit. REMB is read by `weir_sender_on_rtcp`.
weir_status weir_sender_on_receiver_limit(weir_sender *sender, int64_t now_ns, uint64_t limit_bps);

// Handles timeouts. RTCP that is due then waits for `weir_sender_next_rtcp`. A call before
// `weir_sender_next_timeout` does nothing.
weir_status weir_sender_on_timeout(weir_sender *sender, int64_t now_ns);

// Takes the next RTCP datagram to send, or returns `WEIR_STATUS_NONE`. Its bytes are valid until
// the next call with the same sender.
weir_status weir_sender_next_rtcp(weir_sender *sender, weir_bytes *rtcp);

// Writes the time in ns at which `weir_sender_on_timeout` and `weir_sender_next_packet` are due,
// or `WEIR_NEVER`. The time may lie in the past.
weir_status weir_sender_next_timeout(const weir_sender *sender, int64_t *due_ns);

// Writes the controller's target. A source that can drop frames follows `source_bitrate_bps`, any
// other source `bitrate_bps`.
weir_status weir_sender_target(const weir_sender *sender, weir_target *target);

// Takes the change of the target bitrate since the last call, or returns `WEIR_STATUS_NONE`.
// Writes the bitrates before and after in bit/s, and to `metrics` the reason and what led to it.
// Each of the three pointers may be NULL.
weir_status weir_sender_take_change(weir_sender *sender,
                                    uint64_t *from_bps,
                                    uint64_t *to_bps,
                                    weir_metrics *metrics);

// Writes the controller's internal signals, for traces and reports.
weir_status weir_sender_metrics(const weir_sender *sender, weir_metrics *metrics);

// Writes what the encoder of the pictures may make, in bit/s, headers included:
// `source_bitrate_bps` of the target less the rate of sound and of packets that were sent again in
// the last second, less what waits in the queue for more than 50 ms, and at least half of it.
weir_status weir_sender_media_bitrate(const weir_sender *sender, uint64_t *bitrate_bps);

// Writes 1 if a picture that is taken now should be encoded, and 0 if it would be late, because
// more than 250 ms wait in the queue: leave it out before the encoder.
weir_status weir_sender_wants_frame(const weir_sender *sender, uint8_t *wants_frame);

// Writes the number of bytes in the send queue, headers included.
weir_status weir_sender_queued(const weir_sender *sender, uint64_t *bytes);

// The host's RTP stack measured this round-trip time of the path, in ns.
weir_status weir_sender_on_round_trip_time(weir_sender *sender, int64_t now_ns, int64_t rtt_ns);

// The application changed the range of the target bitrate, in bit/s: `0 < min <= start <= max`.
// What is known of the path stays known. The start counts from the next new route; 0 stands for
// 300,000, or what is nearest to it in the range.
weir_status weir_sender_set_limits(weir_sender *sender,
                                   int64_t now_ns,
                                   uint64_t min_bps,
                                   uint64_t start_bps,
                                   uint64_t max_bps);

// The most that the source could use now, in bit/s; `WEIR_NO_VALUE` for an unknown amount. A
// controller that probes does not probe far above it.
weir_status weir_sender_set_desired_bitrate(weir_sender *sender,
                                            int64_t now_ns,
                                            uint64_t desired_bps);

// Packets take another route from now on, for instance because the device left a Wi-Fi network.
// What was measured is forgotten, and the target is the start bitrate again. Feedback on
// packets of the old route is ignored.
weir_status weir_sender_on_route_change(weir_sender *sender, int64_t now_ns);

// The coupled flows of this host gave this flow a new share of their total rate, in bit/s.
weir_status weir_sender_on_shared_rate(weir_sender *sender, int64_t now_ns, uint64_t share_bps);

// Discards all queued packets.
weir_status weir_sender_clear_queue(weir_sender *sender, int64_t now_ns);

// Fills the settings with the defaults. `size` is `sizeof(weir_settings)`.
weir_status weir_settings_init(weir_settings *settings, size_t size);

// The name of a controller, by index from zero; NULL after the last one.
const char *weir_algorithm_name(size_t index);

// A result as text: a line of English without a full stop. The text lives for ever. Any number is
// allowed.
const char *weir_status_text(int32_t status);

// The version of the library at run time, such as `0.1.0`. The text lives for ever.
const char *weir_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEIR_H */
