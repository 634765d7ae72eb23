package windows

import (
	"errors"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestFileErrorMeaning(t *testing.T) {
	for means, codes := range map[error][]uint32{
		host.ErrNotExist: {2, 3, 15},
		host.ErrExist:    {80, 183},
		host.ErrInUse:    {32, 33, 303, 1224},
		host.ErrDiskFull: {39, 112, 1295},
	} {
		t.Run(means.Error(), func(t *testing.T) {
			for _, code := range codes {
				if got := fileErrorMeaning(code); !errors.Is(got, means) {
					t.Errorf("%d: %v", code, got)
				}
			}
		})
	}
	t.Run("access denied and what is not known mean nothing more", func(t *testing.T) {
		for _, code := range []uint32{0, 5, 87, 123} {
			if got := fileErrorMeaning(code); got != nil {
				t.Errorf("%d: %v", code, got)
			}
		}
	})
}
