package windows

import (
	"errors"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestErrorMeanings(t *testing.T) {
	for code, want := range map[uint32]error{
		2: host.ErrNotExist, 3: host.ErrNotExist, 1060: host.ErrNotExist,
		80: host.ErrExist, 183: host.ErrExist, 1073: host.ErrExist, 1078: host.ErrExist,
		32: host.ErrInUse, 33: host.ErrInUse, 170: host.ErrInUse, 1072: host.ErrInUse, 1224: host.ErrInUse,
		39: host.ErrDiskFull, 112: host.ErrDiskFull,
		1068: host.ErrDependency, 1075: host.ErrDependency,
		5: nil, 87: nil, 1058: nil, 1053: nil,
	} {
		if got := errorMeaning(code); !errors.Is(got, want) {
			t.Errorf("code %d: got %v, want %v", code, got, want)
		}
	}
}

func TestClassifiedError_KeepsWindowsMessage(t *testing.T) {
	words := errors.New("the specified service has been marked for deletion")
	err := classifiedError{words, host.ErrInUse}
	if err.Error() != words.Error() || !errors.Is(err, words) || !errors.Is(err, host.ErrInUse) {
		t.Errorf("got %v", err)
	}
}
