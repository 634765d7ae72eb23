package status

import (
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/fleet"
)

// WriteTable writes the command's output for a fleet to a file.
func WriteTable(out io.Writer, f fleet.Fleet, now time.Time) error {
	return view{now: now}.printTable(out, f)
}

// WriteOne writes the command's output for one instance to a file.
func WriteOne(out io.Writer, f fleet.Fleet, i fleet.Instance, events []corev1.Event, now time.Time) error {
	return view{now: now}.printInstance(out, f, i, events)
}
