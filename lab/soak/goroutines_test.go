package soak

import (
	"sync"
	"testing"
)

func TestCountStacks_CertificateManagersExcluded(t *testing.T) {
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

func waitForTheTest(begun chan<- struct{}, end <-chan struct{}) {
	begun <- struct{}{}
	<-end
}

// Other goroutines of the process start and end meanwhile: both counts use one profile.
func TestCountStacks_CurrentProcessCounted(t *testing.T) {
	const waiting = 7
	begun, end := make(chan struct{}), make(chan struct{})
	var ended sync.WaitGroup
	defer ended.Wait()
	defer close(end)
	for range waiting {
		ended.Go(func() { waitForTheTest(begun, end) })
		<-begun
	}
	profile, err := goroutineProfile()
	if err != nil {
		t.Fatal(err)
	}
	all, err := countStacks(profile, "no function has this name")
	if err != nil {
		t.Fatal(err)
	}
	if counted, err := countStacks(profile, ".waitForTheTest+"); err != nil || counted != all-waiting || counted == 0 {
		t.Errorf("%d goroutines, %d without those that wait, %v", all, counted, err)
	}
}
