package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/go-ole/go-ole"
	"github.com/go-ole/go-ole/oleutil"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/windows-machine-config/wmco/test/witness/question"
)

// newSubject returns the subject for this machine.
func newSubject() subject {
	version := `SOFTWARE\Microsoft\Windows NT\CurrentVersion`
	revision, _ := readNumber(version, "UBR")
	return subject{name: fmt.Sprintf("%s, 10.0.%d.%d", readText(version, "ProductName"), currentBuild(), revision), probes: probes}
}

// typedProbe adapts a typed probe to untyped evidence.
func typedProbe[T any](find func(*T) error) func(any) error {
	return func(found any) error {
		evidence, ok := found.(*T)
		if !ok {
			return fmt.Errorf("the evidence is a %T", found)
		}
		return find(evidence)
	}
}

var probes = map[string]func(any) error{
	"N1": typedProbe(probeLog), "N2": typedProbe(probeAttachment), "N3": typedProbe(probeRestart), "N4": typedProbe(probeNetworking), "N5": typedProbe(probeNetworking), "N6": typedProbe(probeFirewall),
	"N7": typedProbe(probeNetworking), "N8": typedProbe(probeLinks), "N9": typedProbe(probeHostKeys), "N10": typedProbe(probeFeatures), "N11": typedProbe(probeNetworking), "N12": typedProbe(probeUpload),
	"N13": typedProbe(probeListing), "A1": typedProbe(probeLogin), "A2": typedProbe(probeHNSService), "A3": typedProbe(probeNetworking), "A4": typedProbe(probeAccess),
}

func readValue[T any](path string, read func(registry.Key) (T, error)) (result T, err error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return result, err
	}
	defer key.Close()
	return read(key)
}

// readText returns a value of the registry, or "" if it cannot be read.
func readText(path, name string) string {
	found, _ := readValue(path, func(key registry.Key) (string, error) {
		content, _, err := key.GetStringValue(name)
		return content, err
	})
	return found
}

func readNumber(path, name string) (uint64, error) {
	return readValue(path, func(key registry.Key) (uint64, error) {
		content, _, err := key.GetIntegerValue(name)
		return content, err
	})
}

// readSetting returns a number of the registry, or nil if it does not exist.
func readSetting(path, name string) *uint32 {
	found, err := readNumber(path, name)
	if err != nil {
		return nil
	}
	short := uint32(found)
	return &short
}

func currentBuild() int {
	found, _ := strconv.Atoi(readText(`SOFTWARE\Microsoft\Windows NT\CurrentVersion`, "CurrentBuild"))
	return found
}

// probeLog opens a log like Go programs and sftp-server.exe open their logs, which prevents deletion meanwhile.
func probeLog(e *question.Log) error {
	folder, err := os.MkdirTemp("", "wmco-witness")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "log")
	writer, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer writer.Close()
	if _, err := writer.WriteString(strings.Repeat("line\r\n", 100)); err != nil {
		return err
	}
	reader, err := os.Open(path)
	if err != nil {
		return err
	}
	defer reader.Close()
	e.Rename = innermostCause(os.Rename(path, path+".1"))
	if e.Rename == "" {
		path += ".1"
	}
	e.Empty = innermostCause(os.Truncate(path, 0))
	written, err := writer.WriteString("next\r\n")
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil {
		e.Written, e.Size = int64(written), info.Size()
	}
	return err
}

// innermostCause returns the innermost cause of an error, which contains no path.
func innermostCause(err error) string {
	if err == nil {
		return ""
	}
	if at := strings.LastIndex(err.Error(), ": "); at >= 0 {
		return err.Error()[at+2:]
	}
	return err.Error()
}

var (
	user32           = windows.NewLazySystemDLL("user32.dll")
	currentStation   = user32.NewProc("GetProcessWindowStation")
	openStation      = user32.NewProc("OpenWindowStationW")
	closeStation     = user32.NewProc("CloseWindowStation")
	objectProperties = user32.NewProc("GetUserObjectInformationW")
)

// probeRestart records the window station of this process, and its rights to restart Windows.
func probeRestart(e *question.Restart) error {
	const objectName, exitWindows = 2, 0x40 // UOI_NAME, WINSTA_EXITWINDOWS (winuser.h)
	var parents question.Login
	if err := probeLogin(&parents); err != nil {
		return err
	}
	e.SSH, e.Privilege = parents.SSH, hasPrivilege("SeShutdownPrivilege")
	var name [256]uint16
	var length uint32
	handle, _, _ := currentStation.Call()
	if ok, _, err := objectProperties.Call(handle, objectName, uintptr(unsafe.Pointer(&name[0])), unsafe.Sizeof(name), uintptr(unsafe.Pointer(&length))); ok == 0 {
		return fmt.Errorf("GetUserObjectInformation: %w", err)
	}
	e.Station = windows.UTF16ToString(name[:])
	opened, _, err := openStation.Call(uintptr(unsafe.Pointer(&name[0])), 0, exitWindows)
	if opened == 0 {
		e.Exit = innermostCause(err)
		return nil
	}
	_, _, _ = closeStation.Call(opened)
	return nil
}

func hasPrivilege(name string) bool {
	var wanted windows.LUID
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil || windows.LookupPrivilegeValue(nil, wide, &wanted) != nil {
		return false
	}
	buffer := make([]uint64, 512)
	var length uint32
	if windows.GetTokenInformation(windows.GetCurrentProcessToken(), windows.TokenPrivileges, (*byte)(unsafe.Pointer(&buffer[0])), uint32(len(buffer)*8), &length) != nil {
		return false
	}
	list := (*windows.Tokenprivileges)(unsafe.Pointer(&buffer[0])).AllPrivileges()
	return slices.ContainsFunc(list, func(p windows.LUIDAndAttributes) bool { return p.Luid == wanted })
}

func probeFirewall(e *question.Firewall) error {
	e.Merge = map[string]*uint32{}
	for profile := range question.FirewallProfiles {
		e.Merge[profile] = readSetting(`SOFTWARE\Policies\Microsoft\WindowsFirewall\`+profile, "AllowLocalPolicyMerge")
	}
	runtime.LockOSThread() // COM state belongs to threads
	defer runtime.UnlockOSThread()
	if err := ole.CoInitializeEx(0, ole.COINIT_MULTITHREADED); err != nil {
		return err
	}
	defer ole.CoUninitialize()
	unknown, err := oleutil.CreateObject("HNetCfg.FwPolicy2")
	if err != nil {
		return err
	}
	defer unknown.Release()
	policy, err := unknown.QueryInterface(ole.IID_IDispatch)
	if err != nil {
		return err
	}
	defer policy.Release()
	for name, into := range map[string]*int{"CurrentProfileTypes": &e.Profiles, "LocalPolicyModifyState": &e.ModifyState} {
		found, err := oleutil.GetProperty(policy, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*into = int(found.Val)
	}
	return nil
}

// dataOfSSH returns the directory of the SSH server.
func dataOfSSH() string { return filepath.Join(os.Getenv("ProgramData"), "ssh") }

func probeHostKeys(e *question.HostKeys) error {
	installed, err := readNumber(`SOFTWARE\Microsoft\Windows NT\CurrentVersion`, "InstallDate")
	if err != nil {
		return err
	}
	e.Installed = time.Unix(int64(installed), 0).UTC()
	files, err := filepath.Glob(filepath.Join(dataOfSSH(), "ssh_host_*_key"))
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		e.Created = append(e.Created, info.ModTime().UTC().Truncate(time.Second))
	}
	return err
}

func probeFeatures(e *question.Features) error {
	e.Build, e.Services = currentBuild(), map[string]bool{}
	for _, name := range []string{"hns", "vfpext"} {
		_, err := readNumber(`SYSTEM\CurrentControlSet\Services\`+name, "Start")
		e.Services[name] = err == nil
	}
	printed, err := exec.Command("dism.exe", "/online", "/english", "/get-features", "/format:table").CombinedOutput()
	e.Features = question.ParseFeatures(string(printed))
	if err != nil {
		return fmt.Errorf("dism: %w", err)
	}
	return nil
}

func probeAccess(e *question.Access) error {
	found, err := windows.GetNamedSecurityInfo(dataOfSSH(), windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return err
	}
	e.SDDL = question.PlainSDDL(found.String())
	return nil
}
