package main

import (
	"bytes"
	"strings"
	"testing"

	"deltafin/engine"
)

// TestDemoHasRoomForAQuarter, on four drives of which --fault pulls one.
func TestDemoHasRoomForAQuarter(t *testing.T) {
	e, err := engine.Open(t.Context(), demoOptions(true, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if n := e.Info().Slots; n < 448/5 || n > 448/3 {
		t.Errorf("%d slots for 448 experts", n)
	}
	var st engine.Streaming
	if !e.Streaming(&st) || len(st.Drives.Drives) != len(demoDrives) || !strings.Contains(st.Drives.Drives[1].Emulated, "gone") {
		t.Errorf("%+v", st.Drives.Drives)
	}
}

// TestDemoSurvivesAPulledDrive: the text is that of a run without the fault.
func TestDemoSurvivesAPulledDrive(t *testing.T) {
	var out, errs bytes.Buffer
	if err := runDemo(t.Context(), streams{out: &out, err: &errs, inTTY: true}, demoQuestion, demoOptions(true, 10)); err != nil {
		t.Error(err)
	}
	_, want, _ := program(t, "", "ask", "--greedy", "--effort", "low", demoQuestion)
	if out.String() != want || want == "" {
		t.Errorf("%q, want %q", out.String(), want)
	}
	for _, part := range []string{"nvme1 was lost", "hit rate", "usb3 (emulated)"} {
		if !strings.Contains(errs.String(), part) {
			t.Errorf("standard error lacks %q:\n%s", part, errs.String())
		}
	}
}
