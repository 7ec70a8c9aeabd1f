"""How VP8 is encoded for a call."""

# Constant bitrate without lookahead, as libwebrtc configures VP8 for a call, but for the model of
# the receiver's buffer (sizes in ms). While the target rises, the encoder makes less than asked,
# because the buffer that it fills grows with the target. With the 600 ms of libwebrtc that was 10 %
# of the rate. What it did not use, up to the whole buffer, it spends later at once: with a buffer of
# 1 s, over a radio link, it made up to 1.5 times the target for half a second. The
# encoder leaves out no pictures, because weircc does: with both, single pictures had up to 100 kB.
# A negative speed is fixed. A positive one is chosen by the time that pictures take, so the stream would
# depend on how busy the machine is.
SETTINGS = (
    "deadline=1 cpu-used=-8 threads=2 end-usage=cbr lag-in-frames=0 keyframe-max-dist=3000 "
    "error-resilient=default min-quantizer=2 max-quantizer=56 undershoot=100 overshoot=15 "
    "buffer-initial-size=100 buffer-optimal-size=100 buffer-size=150 dropframe-threshold=0 "
    "static-threshold=1"
)
