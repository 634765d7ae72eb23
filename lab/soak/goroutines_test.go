package soak

import (
	"runtime"
	"testing"
)

func TestGoroutinesAreCountedWithoutThoseOfCertificateManagers(t *testing.T) {
	before, err := countGoroutines()
	if err != nil {
		t.Fatal(err)
	}
	if all := runtime.NumGoroutine(); before != all {
		t.Errorf("%d of %d goroutines are counted", before, all)
	}
	const more = 7
	end := make(chan struct{})
	defer close(end)
	for range more {
		go func() { <-end }()
	}
	if after, err := countGoroutines(); err != nil || after != before+more {
		t.Errorf("%d are counted, and %d more: %d, %v", before, more, after, err)
	}
	profile := "goroutine profile: total 11\n5 @ 0x1 0x2\n#\t0x1\tmain.leak+0x1\tmain.go:1\n\n" +
		"4 @ 0x1 0x3\n#\t0x1\tk8s.io/client-go/util/certificate.(*manager).run.func1+0x1\tcertificate_manager.go:433\n\n" +
		"2 @ 0x4\n#\t0x4\tmain.main+0x1\tmain.go:9\n\n"
	if n, err := countStacks(profile, certificateManager); err != nil || n != 7 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := countStacks("goroutine profile: total 1\nnonsense\n\n", certificateManager); err == nil {
		t.Errorf("nonsense is %d goroutines", n)
	}
}
