package soak

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strings"
)

// certificateManager is part of the stacks of client-go's certificate managers. A stopped certificate manager
// only ends when its certificate is due for renewal. A real kubelet is a process, and its goroutines end with
// it.
const certificateManager = "k8s.io/client-go/util/certificate.(*manager)"

// countGoroutines returns the number of goroutines of this process, without goroutines of the kubelets'
// certificate managers.
func countGoroutines() (int, error) {
	profile, err := goroutineProfile()
	if err != nil {
		return 0, err
	}
	return countStacks(profile, certificateManager)
}

// goroutineProfile returns the stacks of this process with the number of goroutines for each.
func goroutineProfile() (string, error) {
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		return "", fmt.Errorf("count the goroutines: %w", err)
	}
	return text.String(), nil
}

// countStacks counts the goroutines in a profile in the format of runtime/pprof with debug=1, except goroutines
// with a function in their stack.
func countStacks(profile, but string) (n int, err error) {
	_, stacks, _ := strings.Cut(profile, "\n") // the first line contains the total
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if strings.TrimSpace(stack) == "" || strings.Contains(stack, but) {
			continue
		}
		var same int
		if _, err := fmt.Sscanf(stack, "%d @", &same); err != nil {
			return 0, fmt.Errorf("read the profile of goroutines at %.40q: %w", stack, err)
		}
		n += same
	}
	return n, nil
}
