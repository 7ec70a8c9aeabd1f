package vectors

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// files are those of the folder that WEIR_VECTORS names, or else those beside the library.
func files(t *testing.T) []string {
	t.Helper()
	folder := os.Getenv("WEIR_VECTORS")
	if folder == "" {
		folder = "../../../vectors"
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no folder vectors/ beside the library")
	}
	return files
}

func TestTheControllersReproduceAllVectors(t *testing.T) {
	for _, file := range files(t) {
		if _, err := Play(file); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADifferenceIsFound(t *testing.T) {
	text, err := os.ReadFile(files(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "changed.jsonl")
	// The last target of the file.
	at := bytes.LastIndex(text, []byte(`["target",`)) + len(`["target",`)
	text = append(text[:at:at], append([]byte("1"), text[at:]...)...)
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Play(changed)
	var mismatch *Mismatch
	if !errors.As(err, &mismatch) {
		t.Fatalf("no mismatch: %v", err)
	}
	t.Log(err)
}
