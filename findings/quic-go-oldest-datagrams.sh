#!/bin/sh
# A quic-go application that reads late gets the oldest 128 datagrams, and no word of the newer ones.
#
# Version:   quic-go 0.65.0 (Go module).
# Behaviour: datagrams that came wait for `ReceiveDatagram` in a queue of 128. When it is full, the
#            one that just came is thrown away, after its packet was acknowledged. So the sender
#            sees no loss, the receiver sees no error, and after a stall of the application it plays
#            the past first: 128 packets are 1.0 s of media at 1.2 Mbit/s. The only trace is an
#            event of qlog (`buffer_full`).
# Output:    sent 400 datagrams, read 128: numbers 0 to 127
# Exits with 1 if all come, or newer ones replace older ones.
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
export GOFLAGS=-mod=mod GOMODCACHE="$folder/modules" GOCACHE="$folder/cache"
cd "$folder"
go mod init finding > log 2>&1
go get github.com/quic-go/quic-go@v0.65.0 >> log 2>&1 || { cat log; exit 1; }
cat > main.go <<'END'
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"math/big"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	datagrams = 400
	size      = 1000
	// Time of the application without a read, and between two datagrams.
	stall    = 3 * time.Second
	interval = 2 * time.Millisecond
)

func certificate() tls.Certificate {
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, public, private)
	check(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	config := &quic.Config{EnableDatagrams: true}
	answers := &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"x"}}
	listener, err := quic.ListenAddr("127.0.0.1:0", answers, config)
	check(err)
	forever := context.Background()
	asks := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"x"}}
	sender, err := quic.DialAddr(forever, listener.Addr().String(), asks, config)
	check(err)
	receiver, err := listener.Accept(forever)
	check(err)
	for number := range datagrams {
		data := make([]byte, size)
		binary.BigEndian.PutUint32(data, uint32(number))
		check(sender.SendDatagram(data))
		time.Sleep(interval)
	}
	time.Sleep(stall)
	var read []uint32
	for {
		soon, cancel := context.WithTimeout(forever, 200*time.Millisecond)
		data, err := receiver.ReceiveDatagram(soon)
		cancel()
		if err != nil {
			break
		}
		read = append(read, binary.BigEndian.Uint32(data))
	}
	last := read[len(read)-1]
	fmt.Printf("sent %d datagrams, read %d: numbers %d to %d\n", datagrams, len(read), read[0], last)
	if len(read) != 128 || read[0] != 0 || last > 200 {
		fmt.Println("changed: the oldest 128 were kept")
		os.Exit(1)
	}
}
END
go run . 2>> log || { tail -n 5 log; exit 1; }
