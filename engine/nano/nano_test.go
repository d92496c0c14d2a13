package nano

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"unsafe"

	"deltafin/engine/checkpoint"
)

func open(t *testing.T) *checkpoint.Checkpoint {
	t.Helper()
	c, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestTheModelIsComplete(t *testing.T) {
	c := open(t)
	if err := c.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := c.Summary(); s.Total != 13_028_416 || s.Mapped != s.Total || s.Tensors != 2900 {
		t.Errorf("summary %+v, want 2900 tensors of 13,028,416 bytes", s)
	}
	a := c.Config().Account()
	if m := float64(a.Total().Params) / 1e6; m < 12.555 || m > 12.565 {
		t.Errorf("%.3f M parameters, Notice says 12.56", m)
	}
	if a.Total().Bytes != 13_028_416 {
		t.Errorf("account %d bytes", a.Total().Bytes)
	}
	if g := c.Generation(); len(g.EOS) != 1 || g.EOS[0] != 3842 || *g.Temperature != 0.2 || *g.TopP != 0.9 || !*g.DoSample {
		t.Errorf("generation config %+v", g)
	}
}

func TestWeightsAreNotCopied(t *testing.T) {
	tensor, err := open(t).Tensor("lm_head.weight")
	if err != nil {
		t.Fatal(err)
	}
	at := uintptr(unsafe.Pointer(&tensor.Data[0]))
	start := uintptr(unsafe.Pointer(unsafe.StringData(shard9)))
	if at < start || at >= start+uintptr(len(shard9)) {
		t.Errorf("data at %#x lies outside the embedded shard at %#x", at, start)
	}
}

func TestFilesAreAFileSystem(t *testing.T) {
	if err := fstest.TestFS(memory{"a": "text", "b.json": "{}", "empty": ""}, "a", "b.json", "empty"); err != nil {
		t.Fatal(err)
	}
	b, err := fs.ReadFile(open(t).FS(), "tiktoken.model")
	if err != nil || len(b) != len(ranks) {
		t.Errorf("rank file: %d bytes, %v", len(b), err)
	}
}
