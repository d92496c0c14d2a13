package tokenizer

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// mixed makes about n bytes of text of all sorts: English, Chinese, other
// scripts, code, emoji, digits, layout. Words are drawn at random, so that the
// text does not repeat and pieces are cold as often as in a real one.
func mixed(n int) string {
	english := strings.Fields(`The experts of one layer are read from several drives at once, and only those that a token needs.
		Nothing is skipped; what is measured is written down honestly, don't you think? International standardisation, unbelievably, "works".`)
	code := []string{"func (t *Tokenizer) Encode(text string) []int {\n", "\tif err != nil {\n\t\treturn nil, fmt.Errorf(\"line %d: %w\", n, err)\n\t}\n",
		"for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }\n", "    self.weights = torch.zeros(n_layers, dtype=torch.float32)  # [L, E]\n",
		"const HTTPServer = require('http').createServer;\n", "SELECT id, name FROM users WHERE created_at > '2024-01-01' ORDER BY id;\n"}
	chinese := []rune("的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运笔")
	emoji := []string{"🙂", "🚀", "👩\u200d💻", "🇨🇳", "❤️", "🎉🎉"}
	other := []string{"Привет", "мир", "한국어", "日本語テキスト", "العربية", "हिन्दी", "Ελληνικά", "naïve", "café", "Grüße"}
	rng := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	for b.Len() < n {
		switch k := rng.IntN(20); {
		case k < 9:
			for range 5 + rng.IntN(20) {
				b.WriteString(english[rng.IntN(len(english))])
				b.WriteByte(' ')
			}
			b.WriteString("\n")
		case k < 13:
			for range 5 + rng.IntN(40) {
				b.WriteRune(chinese[rng.IntN(len(chinese))])
				if rng.IntN(12) == 0 {
					b.WriteString("，")
				}
			}
			b.WriteString("。\n\n")
		case k < 16:
			b.WriteString(code[rng.IntN(len(code))])
		case k < 17:
			b.WriteString(emoji[rng.IntN(len(emoji))])
		case k < 18:
			for range 1 + rng.IntN(30) {
				b.WriteByte(byte('0' + rng.IntN(10)))
			}
		default:
			b.WriteString(other[rng.IntN(len(other))])
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// BenchmarkEncodeMixed10MB must stay under 2 s for each operation.
func BenchmarkEncodeMixed10MB(b *testing.B) {
	tok := k3(b)
	text := mixed(10 << 20)
	b.SetBytes(int64(len(text)))
	var ids []int
	for b.Loop() {
		ids = tok.Append(ids[:0], text)
	}
	b.ReportMetric(float64(len(text))/float64(len(ids)), "B/token")
}

// BenchmarkEncodeLongRuns holds the pieces of the greatest length there can be.
func BenchmarkEncodeLongRuns(b *testing.B) {
	tok := k3(b)
	for _, c := range []struct{ name, of string }{{"a", "a"}, {"han", "中文字"}, {"mixed_case", "aBcDeFgHiJ"}, {"symbols", "=-"}, {"spaces", " "}} {
		text := strings.Repeat(c.of, maxRun*4/len(c.of))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var ids []int
			for b.Loop() {
				ids = tok.Append(ids[:0], text)
			}
		})
	}
}

func BenchmarkPieces(b *testing.B) {
	c := newClasses()
	text := mixed(1 << 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for i := 0; i < len(text); {
			i = c.pieceEnd(text, i)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	k3(b)
	dir := sharedDir(b, "data", "kimi-tokenizer")
	for b.Loop() {
		if _, err := Load(os.DirFS(dir), k3Vocab); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	tok := k3(b)
	ids := tok.Encode(mixed(1 << 20))
	b.SetBytes(1 << 20)
	for b.Loop() {
		s := tok.NewStream()
		for _, id := range ids {
			if _, err := s.Add(id); err != nil {
				b.Fatal(err)
			}
		}
	}
}
