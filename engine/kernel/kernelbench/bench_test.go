package kernelbench

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"deltafin/engine/kernel"
)

// TestRowsAreComplete runs every measurement for the shortest time.
func TestRowsAreComplete(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds under an emulator")
	}
	level, err := kernel.Select("")
	if err != nil {
		t.Fatal(err)
	}
	if level.Name == "generic" {
		t.Skip("the generic level takes minutes")
	}
	seen := map[string]bool{}
	rows, err := Run(t.Context(), Options{Level: level, Workers: 2, Budget: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if seen[r.Name] {
			t.Errorf("two rows are called %s", r.Name)
		}
		seen[r.Name] = true
		if r.Value <= 0 || r.Unit == "" {
			t.Errorf("row without a value: %+v", r)
		}
		if strings.HasPrefix(r.Name, "mat") && (r.Limit <= 0 || r.Ratio <= 0) {
			t.Errorf("product without a limit: %+v", r)
		}
	}
	for _, name := range []string{"read/one", "peak/all", "matvec/mxfp4/3072x3584/one", "matmul/bf16/12288x7168/512/all", "region/all"} {
		if !seen[name] {
			t.Errorf("no row %s", name)
		}
	}
	if b, err := json.Marshal(rows[0]); err != nil || !strings.Contains(string(b), `"name":"read/one"`) {
		t.Errorf("JSON: %s, %v", b, err)
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	level, err := kernel.Select("generic")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Run(ctx, Options{Level: level, Workers: 1})
	if err != context.Canceled || len(rows) != 0 {
		t.Errorf("a cancelled run gave %d rows, %v", len(rows), err)
	}
	if _, err := Run(ctx, Options{}); err == nil {
		t.Error("a run without a level was accepted")
	}
}
