// Command weir-vectors plays conformance vectors against the controllers of package weir. It ends
// with 1 at the first difference, after it has printed case, time and difference.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"weir-go/vectors"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: weir-vectors FOLDER")
		os.Exit(2)
	}
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*", "*.jsonl"))
	if err != nil || len(files) == 0 {
		fmt.Fprintln(os.Stderr, "weir-vectors: no vectors in", os.Args[1])
		os.Exit(2)
	}
	compared := 0
	for _, file := range files {
		count, err := vectors.Play(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		compared += count
	}
	fmt.Printf("%d vectors, %d targets equal\n", len(files), compared)
}
