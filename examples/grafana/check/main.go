// Reads dashboards strictly with Grafana's own schema, and says what it lacks or does not know.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// check returns what is wrong with a dashboard. An error of the schema may be empty.
func check(name string) (int, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	var board dashboard.Dashboard
	if err := board.UnmarshalJSONStrict(raw); err != nil && err.Error() != "" {
		return 0, err
	}
	if err := board.Validate(); err != nil && err.Error() != "" {
		return 0, err
	}
	return len(board.Panels), nil
}

func main() {
	plugins.RegisterDefaultPlugins()
	code := 0
	for _, name := range os.Args[1:] {
		panels, err := check(name)
		if err != nil {
			fmt.Printf("%s: %v\n", name, err)
			code = 1
			continue
		}
		fmt.Printf("%s: %d panels are as Grafana's schema has them\n", name, panels)
	}
	os.Exit(code)
}
