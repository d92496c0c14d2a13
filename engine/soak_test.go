package engine

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var soakFor = flag.Duration("soak", 3*time.Second, "how long TestSoak decodes; an hour is the real thing")

// soakDrives are four drives of unequal speed over the demonstration model, each
// with a fault of its own that comes again and again: one goes away, one gives
// wrong bits, one hangs, one slows down and fails some reads.
func soakDrives(d time.Duration) []string {
	gone, slow := "", ""
	for at := time.Second; at < d; at += 45 * time.Second {
		gone += fmt.Sprintf(",fault=gone/from=%s/for=4s", at)
		slow += fmt.Sprintf(",fault=slow/from=%s/for=9s/by=3", at+20*time.Second)
	}
	dir := os.TempDir()
	return []string{
		dir + ",name=a,limit=13MB/s,latency=60us" + gone,
		dir + ",name=b,limit=7MB/s,latency=80us,jitter=200us,fault=flip/after=50/every=701/count=always",
		dir + ",name=c,limit=7MB/s,latency=80us,fault=stall/after=90/every=9001/count=always/for=400ms",
		dir + ",name=d,limit=5MB/s,latency=90us,fault=error/after=20/every=303/count=always" + slow,
	}
}

// TestSoak decodes the demonstration model from drives that fail, with a cache that
// is resized at random: every text is the one the model in memory gives, and the
// memory does not grow. It logs speed and memory over time.
func TestSoak(t *testing.T) {
	mapped := open(t, Options{})
	var prompts, want [][]int
	for _, q := range []string{"What is Deltafin?", "Which drives are the fastest?", "What is the tide table for May?", "List four fruits."} {
		ids := ask(t, mapped, q)
		res, err := mapped.Generate(t.Context(), mapped.NewSequence(), Request{Tokens: ids, MaxTokens: 120}, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		prompts, want = append(prompts, ids), append(want, res.Tokens)
	}
	const most = 2 << 20
	e := open(t, Options{ExpertCache: most, Drives: soakDrives(*soakFor)})
	rng := rand.New(rand.NewPCG(11, 12))
	least := e.stream.store.Least()
	start := time.Now()
	tokens, resized, windows := 0, 0, 20
	mark, from := start, 0
	var rss []int64
	for n := 0; time.Since(start) < *soakFor; n++ {
		k := n % len(prompts)
		res, err := e.Generate(t.Context(), e.NewSequence(), Request{Tokens: prompts[k], MaxTokens: 120}, Listener{
			Token: func(tok Token) error {
				if tok.Index%40 == 7 {
					resized++
					return e.stream.store.Resize(least + rng.Int64N(most-least+1))
				}
				return nil
			},
		})
		if err != nil {
			t.Fatalf("answer %d after %s: %v", n, time.Since(start).Round(time.Second), err)
		}
		if !slices.Equal(res.Tokens, want[k]) {
			t.Fatalf("answer %d after %s differs from that of the model in memory:\n%v\n%v", n, time.Since(start).Round(time.Second), res.Tokens, want[k])
		}
		tokens += len(res.Tokens)
		if now := time.Now(); now.Sub(mark) >= *soakFor/time.Duration(windows) {
			rss = append(rss, residentBytes())
			t.Logf("%6.0f s  %6.1f tokens/s  %5.1f MB resident  %d resizes", now.Sub(start).Seconds(),
				float64(tokens-from)/now.Sub(mark).Seconds(), float64(rss[len(rss)-1])/1e6, resized)
			mark, from = now, tokens
		}
	}
	var st Streaming
	e.Streaming(&st)
	io := st.Drives.Total
	t.Logf("%d tokens, %d resizes, %+v; drives: %d retries, %d mismatches, %d errors, %d times lost, %d hedges",
		tokens, resized, st.Experts.Total, io.Retries, io.Mismatch, io.Errors, io.Lost, io.Hedges)
	if io.Mismatch == 0 || io.Errors == 0 || resized == 0 {
		t.Error("nothing went wrong: the soak tests nothing")
	}
	// A quarter of the run settles caches of the runtime; nothing grows after it.
	if q := len(rss) / 4; q > 0 && rss[0] > 0 {
		if early, late := slices.Max(rss[:q+1]), rss[len(rss)-1]; late > early+24<<20 {
			t.Errorf("%d bytes are resident at the end, %d in the first quarter", late, early)
		}
	}
}

// residentBytes is the process's resident memory, 0 where the system does not say.
func residentBytes() int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}
