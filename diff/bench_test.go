package diff

import "testing"

func BenchmarkDemo(b *testing.B) {
	before, after := demo(b)
	for b.Loop() {
		if _, err := Compare(before, after, CompareOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPublished(b *testing.B) {
	before, after := rendered(b, "argocd-operator", "0.14.0", ""), rendered(b, "argocd-operator", "0.18.0", "")
	b.Run("upgrade", func(b *testing.B) {
		for b.Loop() {
			if _, err := Compare(before, after, CompareOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			if _, err := Compare(after, after, CompareOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
