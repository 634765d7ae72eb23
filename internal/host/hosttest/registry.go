package hosttest

import (
	"context"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
)

type registryCalls struct {
	of host.Registry
	*calls
}

func (w registryCalls) Number(ctx context.Context, at host.RegistryName) (uint32, error) {
	w.recordCall("Registry.Number")
	return w.of.Number(ctx, at)
}

func (w registryCalls) SetNumber(ctx context.Context, at host.RegistryName, value uint32) error {
	w.recordCall("Registry.SetNumber")
	return w.of.SetNumber(ctx, at, value)
}

func (w registryCalls) Delete(ctx context.Context, at host.RegistryName) error {
	w.recordCall("Registry.Delete")
	return w.of.Delete(ctx, at)
}

// registryValue is a value of the suite, in a key that is left behind empty.
var registryValue = host.RegistryName{Key: `SOFTWARE\wmco-contract-test`, Name: "Number"}

func (s *suite) readNumber() uint32 {
	value, err := s.Registry.Number(s.ctx, registryValue)
	s.requireNoError(err)
	return value
}

func registryBehaviors() []Behavior {
	takeAway := func(s *suite) {
		s.atEnd(func(ctx context.Context) error { return s.Registry.Delete(ctx, registryValue) })
	}
	return []Behavior{
		{"Registry.Number", "reading a missing value fails", func(s *suite) {
			_, err := s.Registry.Number(s.ctx, registryValue)
			s.requireError(err, host.ErrNotExist)
			_, err = s.Registry.Number(s.ctx, host.RegistryName{Key: `SOFTWARE\wmco-contract-test\no such`, Name: "Number"})
			s.requireError(err, host.ErrNotExist)
		}},
		{"Registry.SetNumber", "a number can be set repeatedly, and its name is case-insensitive", func(s *suite) {
			takeAway(s)
			for _, value := range []uint32{1, 0, 1<<32 - 1} {
				s.requireNoError(s.Registry.SetNumber(s.ctx, registryValue, value))
				expectEqual(s, "value", s.readNumber(), value)
			}
			folded := host.RegistryName{
				Key: strings.ToUpper(registryValue.Key), Name: strings.ToLower(registryValue.Name),
			}
			s.requireNoError(s.Registry.SetNumber(s.ctx, folded, 7))
			expectEqual(s, "value", s.readNumber(), 7)
		}},
		{"Registry.SetNumber", "a value without a name or a key is rejected", func(s *suite) {
			s.expectAnyError("no name", s.Registry.SetNumber(s.ctx, host.RegistryName{Key: registryValue.Key}, 1))
			s.expectAnyError("no key", s.Registry.SetNumber(s.ctx, host.RegistryName{Name: registryValue.Name}, 1))
		}},
		{"Registry.Delete", "a value can be deleted, and a missing value is no error", func(s *suite) {
			takeAway(s)
			s.requireNoError(s.Registry.SetNumber(s.ctx, registryValue, 1))
			for range 2 {
				s.requireNoError(s.Registry.Delete(s.ctx, registryValue))
				_, err := s.Registry.Number(s.ctx, registryValue)
				s.requireError(err, host.ErrNotExist)
			}
		}},
	}
}
