// Package weir has Weir's congestion controllers for real-time media: gcc, nada, scream, scream-v2
// and sluice. They are the library's own, compiled to WebAssembly and run by wazero: there is no
// cgo, and the results are the same to the last bit as those of the Rust and C libraries.
//
// A [Controller] is a state machine. It has no clock and no goroutine: sent packets and feedback go
// in, a target bitrate comes out. Package weircc plugs it into pion.
//
//	controller, err := weir.New(weir.GCC, weir.Settings{MaxBitrate: 2_500_000})
//	...
//	controller.OnPacketSent(time.Now(), weir.SentPacket{SequenceNumber: number, Size: 1_200})
//	controller.OnFeedback(time.Now(), weir.Feedback{Packets: reports})
//	target, err := controller.Target()
//
// The file weir.wasm is made from the same tree: `go generate` makes it, with Rust, and the package of
// a release has it. Without it, New returns ErrNoLibrary.
package weir

//go:generate ../../scripts/build/go-wasm.sh
