package weir

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The library, and a note that is there without it: the module builds before the library is made.
//
//go:embed weir.wasm*
var files embed.FS

// ErrNoLibrary: this copy of the module lacks its WebAssembly.
var ErrNoLibrary = errors.New("weir: there is no weir.wasm: take the package of a release, or run " +
	"scripts/build/go-wasm.sh of the project, which needs Rust")

// library is compiled once in a process.
type library struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

var load = sync.OnceValues(func() (*library, error) {
	binaryModule, err := files.ReadFile("weir.wasm")
	if err != nil {
		return nil, ErrNoLibrary
	}
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	compiled, err := runtime.CompileModule(ctx, binaryModule)
	if err != nil {
		return nil, fmt.Errorf("weir: cannot compile the library: %w", err)
	}
	return &library{runtime, compiled}, nil
})

const (
	pageSize = 65_536
	// The scratch page: structs at its start, packets of a report behind them.
	packetsAt = 2_048
)

// instance is the memory of one controller, with the functions that work on it.
type instance struct {
	module  api.Module
	memory  api.Memory
	scratch uint32
	// Place of the packets of a report, and how many fit.
	packets, capacity uint32
	stack             [8]uint64
	functions         functions
}

type functions struct {
	settingsInit, controllerNew, onMediaQueued, onPacketSent, onFeedback, onRoundTripTime,
	onReceiverLimit, setLimits, setDesiredBitrate, onRouteChange, onSharedRate, onTimeout,
	nextTimeout, target, metrics api.Function
}

func newInstance() (*instance, error) {
	library, err := load()
	if err != nil {
		return nil, err
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
	module, err := library.runtime.InstantiateModule(context.Background(), library.compiled, config)
	if err != nil {
		return nil, fmt.Errorf("weir: cannot start the library: %w", err)
	}
	i := &instance{module: module, memory: module.Memory()}
	named := map[string]*api.Function{
		"settings_init":                  &i.functions.settingsInit,
		"controller_new":                 &i.functions.controllerNew,
		"controller_on_media_queued":     &i.functions.onMediaQueued,
		"controller_on_packet_sent":      &i.functions.onPacketSent,
		"controller_on_feedback":         &i.functions.onFeedback,
		"controller_on_round_trip_time":  &i.functions.onRoundTripTime,
		"controller_on_receiver_limit":   &i.functions.onReceiverLimit,
		"controller_set_limits":          &i.functions.setLimits,
		"controller_set_desired_bitrate": &i.functions.setDesiredBitrate,
		"controller_on_route_change":     &i.functions.onRouteChange,
		"controller_on_shared_rate":      &i.functions.onSharedRate,
		"controller_on_timeout":          &i.functions.onTimeout,
		"controller_next_timeout":        &i.functions.nextTimeout,
		"controller_target":              &i.functions.target,
		"controller_metrics":             &i.functions.metrics,
	}
	for name, function := range named {
		*function = module.ExportedFunction("weir_" + name)
		if *function == nil {
			i.close()
			return nil, fmt.Errorf("weir: weir.wasm has no function weir_%s", name)
		}
	}
	if i.scratch, err = i.grow(1); err != nil {
		i.close()
		return nil, err
	}
	i.packets, i.capacity = i.scratch+packetsAt, (pageSize-packetsAt)/reportSize
	return i, nil
}

func (i *instance) close() { _ = i.module.Close(context.Background()) }

// grow returns new memory that the library's allocator does not know.
func (i *instance) grow(pages uint32) (uint32, error) {
	before, ok := i.memory.Grow(pages)
	if !ok {
		return 0, ErrInternal
	}
	return before * pageSize, nil
}

// bytes is a view of the memory, valid until the next call of a function.
func (i *instance) bytes(at, length uint32) []byte {
	view, ok := i.memory.Read(at, length)
	if !ok {
		panic("weir: outside of the library's memory")
	}
	return view
}

// call calls a function whose arguments are on the stack.
func (i *instance) call(function api.Function, arguments ...uint64) error {
	stack := i.stack[:max(len(arguments), 1)]
	copy(stack, arguments)
	if err := function.CallWithStack(context.Background(), stack); err != nil {
		return fmt.Errorf("%w: %w", ErrInternal, err)
	}
	if status := Status(int32(uint32(stack[0]))); status < 0 { //nolint:gosec // an i32
		return status
	}
	return nil
}

// roomFor makes room for the packets of a report.
func (i *instance) roomFor(packets int) error {
	if uint32(packets) <= i.capacity { //nolint:gosec // checked by the caller
		return nil
	}
	pages := uint32(packets*reportSize/pageSize + 1) //nolint:gosec // checked by the caller
	at, err := i.grow(pages)
	if err != nil {
		return err
	}
	i.packets, i.capacity = at, pages*pageSize/reportSize
	return nil
}

var order = binary.LittleEndian
