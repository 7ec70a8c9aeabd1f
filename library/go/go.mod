module weir-go

go 1.25.0

require (
	github.com/pion/interceptor v0.1.51
	github.com/pion/rtcp v1.2.20
	github.com/pion/rtp v1.10.6
	github.com/tetratelabs/wazero v1.12.0
)

require (
	github.com/pion/logging v0.2.4 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	golang.org/x/sys v0.44.0 // indirect
)
