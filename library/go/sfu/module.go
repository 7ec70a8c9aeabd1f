package sfu

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The library, and a note that is there without it: the module builds before the library is made.
//
//go:embed weir-sfu.wasm*
var files embed.FS

// ErrNoLibrary: this copy of the module lacks its WebAssembly.
var ErrNoLibrary = errors.New("weir/sfu: there is no weir-sfu.wasm: take the package of a release, or run " +
	"scripts/build/go-wasm.sh of the project, which needs Rust")

// library is compiled once in a process.
type library struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

var load = sync.OnceValues(func() (*library, error) {
	binaryModule, err := files.ReadFile("weir-sfu.wasm")
	if err != nil {
		return nil, ErrNoLibrary
	}
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	compiled, err := runtime.CompileModule(ctx, binaryModule)
	if err != nil {
		return nil, fmt.Errorf("weir/sfu: cannot compile the library: %w", err)
	}
	return &library{runtime, compiled}, nil
})

// functions are those of the library, by their place in names.
type function int

const (
	start function = iota
	onSent
	report
	onFeedback
	onRoundTripTime
	onReceiverLimit
	setLimits
	onRouteChange
	layer
	setTrack
	setAudio
	bitrate
	setBitrates
	removeTrack
	choose
	hasFallen
	level
	probeID
	probeRate
	probeSize
	probePackets
	target
	nextDecision
	whyTarget
	textOf
	functionCount
)

var names = [functionCount]string{
	"start", "on_sent", "report", "on_feedback", "on_round_trip_time", "on_receiver_limit", "set_limits",
	"on_route_change", "layer", "set_track", "set_audio", "bitrate", "set_bitrates", "remove_track", "choose", "has_fallen", "level", "probe", "probe_rate", "probe_size", "probe_packets",
	"target", "next_decision", "why", "text",
}

// instance is the memory of one chooser, with the functions that work on it.
type instance struct {
	module    api.Module
	functions [functionCount]api.Function
	stack     [8]uint64
}

func newInstance() (*instance, error) {
	library, err := load()
	if err != nil {
		return nil, err
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := library.runtime.InstantiateModule(context.Background(), library.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("weir/sfu: cannot start the library: %w", err)
	}
	i := &instance{module: module}
	for place, name := range names {
		if i.functions[place] = module.ExportedFunction("weir_sfu_" + name); i.functions[place] == nil {
			_ = module.Close(context.Background())
			return nil, fmt.Errorf("weir/sfu: weir-sfu.wasm has no function weir_sfu_%s", name)
		}
	}
	return i, nil
}

// call calls a function, and returns its result as it is.
func (i *instance) call(which function, arguments ...uint64) (uint64, error) {
	stack := i.stack[:max(len(arguments), 1)]
	copy(stack, arguments)
	if err := i.functions[which].CallWithStack(context.Background(), stack); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrInternal, err)
	}
	return stack[0], nil
}

func (i *instance) close() error { return i.module.Close(context.Background()) }
