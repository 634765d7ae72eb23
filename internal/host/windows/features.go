//go:build windows

package windows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/windows-machine-config/wmco/internal/host"
)

// features implements host.Features with the DISM API (dismapi.dll, on every Windows Server with desktop or core),
// which dism.exe and Install-WindowsFeature also use. The API prints nothing and has no console progress, which
// could fail in an SSH session without a screen buffer. The log is %windir%\Logs\DISM\dism.log.
//
// Each operation calls, on one thread in COM's multithreaded apartment:
//
//	HRESULT DismInitialize(int LogLevel = 1, PCWSTR LogFilePath = NULL, PCWSTR ScratchDirectory = NULL)
//	HRESULT DismOpenSession(PCWSTR ImagePath = L"DISM_{53BFAE52-B167-4E2F-A258-0A37B57FF845}",
//	                        PCWSTR WindowsDirectory = NULL, PCWSTR SystemDrive = NULL, UINT *Session)
//	HRESULT DismGetFeatureInfo(UINT Session, PCWSTR FeatureName, PCWSTR Identifier = NULL, int PackageIdentifier = 0,
//	                           DismFeatureInfo **FeatureInfo)
//	HRESULT DismEnableFeature(UINT Session, PCWSTR FeatureName, PCWSTR Identifier = NULL, int PackageIdentifier = 0,
//	                          BOOL LimitAccess = FALSE, PCWSTR *SourcePaths = NULL, UINT SourcePathCount = 0,
//	                          BOOL EnableAll = TRUE,
//	                          HANDLE CancelEvent, DISM_PROGRESS_CALLBACK Progress = NULL, PVOID UserData = NULL)
//	HRESULT DismDisableFeature(UINT Session, PCWSTR FeatureName, PCWSTR PackageName = NULL,
//	                           BOOL RemovePayload = FALSE,
//	                           HANDLE CancelEvent, DISM_PROGRESS_CALLBACK Progress = NULL, PVOID UserData = NULL)
//	HRESULT DismGetLastErrorMessage(DismString **ErrorMessage)    after a failure; struct { PCWSTR Value; }
//	HRESULT DismDelete(void *DismStructure)                       after DismGetFeatureInfo and DismGetLastErrorMessage
//	HRESULT DismCloseSession(UINT Session)
//	HRESULT DismShutdown(void)
//
// CancelEvent is a manual-reset event that is set when ctx is done.
type features struct{}

// dismFeatureInfo is the part of DismFeatureInfo in dismapi.h that the agent reads. The header packs its structures
// to one byte. The 64-bit offsets are: FeatureName 0, FeatureState 8, DisplayName 12, Description 20,
// RestartRequired 28, CustomProperty 32, CustomPropertyCount 40; 44 bytes in total.
type dismFeatureInfo struct {
	name  *uint16
	state dismState
}

const (
	dismOnlineImage       = "DISM_{53BFAE52-B167-4E2F-A258-0A37B57FF845}"
	dismLogErrorsWarnings = 1
)

// dism is dismapi.dll. A process may initialize DISM only once at a time.
var dism = struct {
	sync.Mutex
	library *windows.LazyDLL
}{library: windows.NewLazySystemDLL("dismapi.dll")}

// State queries DISM. Opening a DISM session takes some seconds.
func (features) State(ctx context.Context, name string) (host.FeatureState, error) {
	state, err := runInDISM(ctx, func(s dismSession) (host.FeatureState, error) { return s.readState(name) })
	if err != nil {
		return host.FeatureUnknown, fmt.Errorf("query Windows feature %s: %w", name, err)
	}
	return state, nil
}

// Enable enables a feature with all its dependencies (EnableAll).
func (features) Enable(ctx context.Context, name string) error {
	err := changeFeature(ctx, name, dismChange{host.FeatureEnabled, host.FeatureEnablePending, dismSession.enableFeature})
	if err != nil {
		return fmt.Errorf("enable Windows feature %s: %w", name, err)
	}
	return nil
}

// Disable disables a feature and keeps its files on disk.
func (features) Disable(ctx context.Context, name string) error {
	err := changeFeature(ctx, name, dismChange{host.FeatureDisabled, host.FeatureDisablePending, dismSession.disableFeature})
	if err != nil {
		return fmt.Errorf("disable Windows feature %s: %w", name, err)
	}
	return nil
}

// dismChange changes a feature to the desired state, or to pending until a required restart.
type dismChange struct {
	desired, pending host.FeatureState
	do               func(s dismSession, feature *uint16, cancel windows.Handle) error
}

// changeFeature applies a change. If ctx ends, it cancels the operation and waits until DISM has stopped, so that
// the state of the feature is certain.
func changeFeature(ctx context.Context, name string, change dismChange) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	_, err := runInDISM(context.WithoutCancel(ctx), func(s dismSession) (struct{}, error) {
		return struct{}{}, s.applyChange(ctx, name, change)
	})
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// dismSession is a DISM session with the running Windows.
type dismSession uint32

// runInDISM runs do in a session. Sessions run one at a time.
func runInDISM[T any](ctx context.Context, do func(dismSession) (T, error)) (T, error) {
	if err := dism.library.Load(); err != nil {
		return *new(T), fmt.Errorf("this version of Windows has no DISM API: %w", err)
	}
	return runInCOM(ctx, func() (value T, err error) {
		dism.Lock()
		defer dism.Unlock()
		if err := dismCall("DismInitialize", dismLogErrorsWarnings, 0, 0); err != nil {
			return value, err
		}
		defer dismCall("DismShutdown") //nolint:errcheck // the work is done
		session, err := openDISM()
		if err != nil {
			return value, err
		}
		defer dismCall("DismCloseSession", uintptr(session)) //nolint:errcheck // the work is done
		return do(session)
	})
}

func openDISM() (dismSession, error) {
	image, err := windows.UTF16PtrFromString(dismOnlineImage)
	if err != nil {
		return 0, err
	}
	var session dismSession
	err = dismCall("DismOpenSession", uintptr(unsafe.Pointer(image)), 0, 0, uintptr(unsafe.Pointer(&session)))
	return session, err
}

func (s dismSession) readState(name string) (host.FeatureState, error) {
	feature, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return host.FeatureUnknown, err
	}
	var info *dismFeatureInfo
	err = dismCall("DismGetFeatureInfo", uintptr(s), uintptr(unsafe.Pointer(feature)), 0, 0,
		uintptr(unsafe.Pointer(&info)))
	var failure *dismError
	if errors.As(err, &failure) && (failure.result == resultUnknownFeature || failure.result == resultNotFound) {
		return host.FeatureUnknown, nil
	}
	if err != nil {
		return host.FeatureUnknown, err
	}
	defer dismCall("DismDelete", uintptr(unsafe.Pointer(info))) //nolint:errcheck // only memory
	return featureState(info.state)
}

func (s dismSession) enableFeature(feature *uint16, cancel windows.Handle) error {
	return dismCall("DismEnableFeature", uintptr(s), uintptr(unsafe.Pointer(feature)), 0, 0, 0, 0, 0, 1,
		uintptr(cancel), 0, 0)
}

func (s dismSession) disableFeature(feature *uint16, cancel windows.Handle) error {
	return dismCall("DismDisableFeature", uintptr(s), uintptr(unsafe.Pointer(feature)), 0, 0, uintptr(cancel), 0, 0)
}

// applyChange applies a change unless the feature already has the desired or the pending state.
func (s dismSession) applyChange(ctx context.Context, name string, change dismChange) error {
	now, err := s.readState(name)
	switch {
	case err != nil:
		return err
	case now == host.FeatureUnknown:
		return &dismError{call: "DismGetFeatureInfo", result: resultUnknownFeature}
	case now == change.desired || now == change.pending:
		return nil
	}
	feature, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	cancel, release, err := cancelEvent(ctx)
	if err != nil {
		return err
	}
	defer release()
	return change.do(s, feature, cancel)
}

// dismCall calls an entry point and returns a failure as a dismError with the message of DISM.
//
//go:uintptrescapes
func dismCall(name string, arguments ...uintptr) error {
	entry := dism.library.NewProc(name)
	if err := entry.Find(); err != nil {
		return fmt.Errorf("the DISM API of this version of Windows has no %s: %w", name, err)
	}
	code, _, _ := entry.Call(arguments...)
	if r := result(code); r.isFailure() {
		return &dismError{call: name, result: r, message: dismMessage()}
	}
	return nil
}

// dismMessage returns the message of the last failure on this thread, or "".
func dismMessage() string {
	ask, free := dism.library.NewProc("DismGetLastErrorMessage"), dism.library.NewProc("DismDelete")
	if ask.Find() != nil || free.Find() != nil {
		return ""
	}
	var message *struct{ text *uint16 }
	if code, _, _ := ask.Call(uintptr(unsafe.Pointer(&message))); result(code).isFailure() || message == nil {
		return ""
	}
	defer free.Call(uintptr(unsafe.Pointer(message))) //nolint:errcheck // only memory
	return strings.TrimSpace(windows.UTF16PtrToString(message.text))
}
