package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// encoder is a process of ../encoder.py.
type encoder struct {
	lock       sync.Mutex
	input      io.Writer
	output     *bufio.Reader
	isSkipping bool
}

func startEncoder(settings settings) (*encoder, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	script := filepath.Join(filepath.Dir(program), "..", "encoder.py")
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	// Debian's Python, which has the binding of GStreamer.
	command := exec.Command("/usr/bin/python3", script, string(text))
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &encoder{input: input, output: bufio.NewReaderSize(output, 1<<20)}, command.Start()
}

// say writes a command: `start`, `key`, `skip`, `take`, or `rate` with bit/s.
func (e *encoder) say(command string) {
	e.lock.Lock()
	defer e.lock.Unlock()
	_, _ = io.WriteString(e.input, command+"\n")
}

// wants says whether pictures should be encoded, or left out.
func (e *encoder) wants(frames bool) {
	if e.isSkipping != frames {
		return
	}
	e.isSkipping = !frames
	if frames {
		e.say("take")
	} else {
		e.say("skip")
	}
}

// next is the next frame; an empty one for a picture that was left out.
func (e *encoder) next() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(e.output, length[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(e.output, frame)
	return frame, err
}
