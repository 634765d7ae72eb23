//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-ole/go-ole"

	"github.com/windows-machine-config/wmco/internal/host"
)

// antivirus implements host.Antivirus with WMI, the only documented API for the exclusions of Microsoft Defender
// Antivirus. The cmdlets Add-MpPreference and Remove-MpPreference call the same methods. The registry keys are
// unsuitable because only Defender itself may write there. The class MSFT_MpPreference has one instance. The
// properties ExclusionProcess and ExclusionPath are arrays of strings, or NULL. The methods Add and Remove have
// parameters of the same names.
//
// WMI cannot report whether Defender is active, because the class also exists where Defender does not run.
type antivirus struct{}

const (
	defenderNamespace  = `ROOT\Microsoft\Windows\Defender`
	defenderPreference = "MSFT_MpPreference"
)

func (antivirus) IsActive(ctx context.Context) (bool, error) {
	list, err := services{}.Query(ctx, host.DefenderService)
	if err != nil {
		return false, err
	}
	if len(list) == 0 || list[0].State != host.ServiceRunning {
		return false, nil
	}
	running, err := processes{}.List(ctx)
	if err != nil {
		return false, err
	}
	return host.IsDefenderActive(list, running), nil
}

func (a antivirus) Exclusions(ctx context.Context) ([]host.Exclusion, error) {
	list, err := withDefender(ctx, a, listExclusions)
	if err != nil {
		return nil, fmt.Errorf("read the exclusions of Microsoft Defender Antivirus: %w", err)
	}
	return list, nil
}

func (a antivirus) AddExclusion(ctx context.Context, exclusion host.Exclusion) error {
	return a.updateExclusion(ctx, "Add", exclusion, true)
}

func (a antivirus) RemoveExclusion(ctx context.Context, exclusion host.Exclusion) error {
	return a.updateExclusion(ctx, "Remove", exclusion, false)
}

// updateExclusion calls a method and checks the effect: Defender reports success without a change if the exclusions are
// managed elsewhere.
func (a antivirus) updateExclusion(ctx context.Context, method string, exclusion host.Exclusion, wanted bool) error {
	property, err := exclusionProperty(exclusion.Kind)
	if err == nil && exclusion.Value == "" {
		err = errors.New("the value is empty")
	}
	if err == nil {
		_, err = withDefender(ctx, a, func(service *ole.IDispatch) (struct{}, error) {
			return struct{}{}, changeExclusion(service, method, property, exclusion, wanted)
		})
	}
	if err != nil {
		return fmt.Errorf("%s the exclusion of %q in Microsoft Defender Antivirus: %w", strings.ToLower(method), exclusion.Value, err)
	}
	return nil
}

// withDefender calls ask with Defender's WMI namespace if Defender is active.
func withDefender[T any](ctx context.Context, a antivirus, ask func(service *ole.IDispatch) (T, error)) (T, error) {
	active, err := a.IsActive(ctx)
	if err == nil && !active {
		err = host.ErrNoAntivirus
	}
	if err != nil {
		return *new(T), err
	}
	return runInCOM(ctx, func() (T, error) {
		service, err := connectWMI(defenderNamespace)
		if err != nil {
			return *new(T), err
		}
		defer service.Release()
		return ask(service)
	})
}

func changeExclusion(service *ole.IDispatch, method, property string, exclusion host.Exclusion, wanted bool) error {
	before, err := listExclusions(service)
	if err != nil || slices.ContainsFunc(before, exclusion.Is) == wanted {
		return err
	}
	returned, err := callClass(service, defenderPreference, method, property, []string{exclusion.Value})
	if err == nil && returned != 0 {
		err = meaningOf(fmt.Errorf("defender returned 0x%08x", returned), returned)
	}
	if err != nil {
		return err
	}
	after, err := listExclusions(service)
	if err != nil { // the change may have succeeded: neither ErrRefused nor ErrNoAntivirus applies
		return fmt.Errorf("the exclusion may have changed, but the exclusions cannot be read: %v", err) //nolint:errorlint // hides the meaning
	}
	if slices.ContainsFunc(after, exclusion.Is) != wanted {
		return fmt.Errorf("%w: Defender reports success, but its exclusions are unchanged", host.ErrRefused)
	}
	return nil
}

func listExclusions(service *ole.IDispatch) (list []host.Exclusion, err error) {
	instances, err := callObject(service, "InstancesOf", defenderPreference)
	if err != nil {
		return nil, err
	}
	defer instances.Release()
	err = forEachItem(instances, wmiError, func(item *ole.VARIANT) error {
		for _, kind := range []host.ExclusionKind{host.ExcludeProcess, host.ExcludePath} {
			property, err := exclusionProperty(kind)
			if err != nil {
				return err
			}
			values, err := stringsIn(item.ToIDispatch(), property)
			if err != nil {
				return err
			}
			some, err := exclusionsOf(kind, values)
			if err != nil {
				return err
			}
			list = append(list, some...)
		}
		return nil
	})
	if err != nil {
		return nil, err // a partial list would imply that the rest is missing
	}
	return list, nil
}
