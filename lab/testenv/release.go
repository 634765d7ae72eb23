package testenv

import "github.com/windows-machine-config/wmco/internal/operator"

// Release is a version of the operator with the payload of its image.
type Release struct {
	Version          string
	PayloadDirectory string
}

// WithRelease runs an operator of another release than the environment's own, as in an upgrade. Hosts run the programs
// of all releases.
func WithRelease(release Release) func(*operator.Config) {
	return func(c *operator.Config) { c.Version, c.PayloadDirectory = release.Version, release.PayloadDirectory }
}
