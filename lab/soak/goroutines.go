package soak

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strings"
)

// certificateManager is in the stacks of client-go's certificate managers. One that was stopped ends when its
// certificate is due, and not before: a kubelet is a process of its own, and takes them with it.
const certificateManager = "k8s.io/client-go/util/certificate.(*manager)"

// countGoroutines counts the goroutines of this process, without those of kubelets' certificate managers.
func countGoroutines() (int, error) {
	profile, err := goroutineProfile()
	if err != nil {
		return 0, err
	}
	return countStacks(profile, certificateManager)
}

// goroutineProfile returns the stacks of this process, and how many goroutines have each.
func goroutineProfile() (string, error) {
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		return "", fmt.Errorf("count the goroutines: %w", err)
	}
	return text.String(), nil
}

// countStacks counts goroutines in a profile as runtime/pprof writes it with debug=1, but those whose stacks hold a
// function.
func countStacks(profile, but string) (n int, err error) {
	_, stacks, _ := strings.Cut(profile, "\n") // the first line has the total
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
