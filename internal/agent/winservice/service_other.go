//go:build !windows

package winservice

import (
	"errors"
	"fmt"

	"k8s.io/utils/clock"
)

// Run fails: only Windows has such services.
func Run(name string, _ clock.WithTicker, _ Work) error {
	return fmt.Errorf("run as service %s: %w: this program was not built for Windows", name, errors.ErrUnsupported)
}
