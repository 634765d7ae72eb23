//go:build windows

// Command guest is the program that tests run on Wine hosts.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

func main() {
	verbs := map[string]func(args []string) error{
		"args": printArgs, "echo": echoInput, "exit": exitWithCode, "count": countLines, "sleep": sleepForever, "spawn": spawnChild, "restart": restartWindows,
		"name": setName, "install": installService, "service": runService, "state": printServiceState, "version": printVersion,
		"alive": printAlive, "dial": printGreeting,
	}
	if len(os.Args) < 2 || verbs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "guest: no such verb")
		os.Exit(2)
	}
	if err := verbs[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}

func printArgs(args []string) error { return json.NewEncoder(os.Stdout).Encode(args) }

func echoInput([]string) error {
	_, err := io.Copy(os.Stdout, os.Stdin)
	return err
}

// exitWithCode writes to both outputs and exits with a code.
func exitWithCode(args []string) error {
	var code int
	if _, err := fmt.Sscan(args[0], &code); err != nil {
		return err
	}
	fmt.Println("to stdout")
	fmt.Fprintln(os.Stderr, "to stderr")
	os.Exit(code)
	return nil
}

// countLines prints a number at the start and after each line of input, until the input ends. The dialog verifies
// that output is not buffered.
func countLines([]string) error {
	var word string
	for n := 1; ; n++ {
		fmt.Println(n)
		if _, err := fmt.Scanln(&word); err != nil {
			return nil //nolint:nilerr // the end of the input is the end
		}
	}
}

// sleepForever writes its process id to a file and never ends.
func sleepForever(args []string) error {
	if err := os.WriteFile(args[0], []byte(fmt.Sprint(os.Getpid())), 0o644); err != nil {
		return err
	}
	for {
		time.Sleep(time.Hour)
	}
}

// spawnChild starts a sleeping child and waits for it.
func spawnChild(args []string) error { return exec.Command(os.Args[0], "sleep", args[0]).Run() }

func restartWindows([]string) error {
	var token windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES, &token); err != nil {
		return err
	}
	privileges := windows.Tokenprivileges{PrivilegeCount: 1}
	privileges.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
	name := windows.StringToUTF16Ptr("SeShutdownPrivilege")
	if err := windows.LookupPrivilegeValue(nil, name, &privileges.Privileges[0].Luid); err != nil {
		return err
	}
	if err := windows.AdjustTokenPrivileges(token, false, &privileges, 0, nil, nil); err != nil {
		return err
	}
	return windows.InitiateSystemShutdownEx(nil, nil, 0, true, true, 0)
}

var setComputerNameEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("SetComputerNameExW")

// setName sets the host name for the next boot.
func setName(args []string) error {
	name, err := windows.UTF16PtrFromString(args[0])
	if err != nil {
		return err
	}
	const physicalDNSHostname = 5
	if ok, _, err := setComputerNameEx.Call(physicalDNSHostname, uintptr(unsafe.Pointer(name))); ok == 0 {
		return fmt.Errorf("SetComputerNameEx: %w", err)
	}
	return nil
}

// installService creates a service with automatic start and starts it. The arguments are the name and, optionally,
// the delay before the process connects.
func installService(args []string) error {
	manager, err := mgr.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = manager.Disconnect() }()
	created, err := manager.CreateService(args[0], os.Args[0], mgr.Config{StartType: mgr.StartAutomatic},
		append([]string{"service"}, args[1:]...)...)
	if err != nil {
		return err
	}
	defer created.Close()
	return created.Start()
}

// runService runs the process of a service, which connects to the service control manager after an optional delay. Each
// start appends a line to a file.
func runService(args []string) error {
	if len(args) > 0 {
		delay, err := time.ParseDuration(args[0])
		if err != nil {
			return err
		}
		time.Sleep(delay)
	}
	file, err := os.OpenFile(`C:\starts.txt`, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	fmt.Fprintln(file, os.Getpid())
	if err := file.Close(); err != nil {
		return err
	}
	return svc.Run("", handler{})
}

type handler struct{}

// Execute implements svc.Handler.
func (handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	for request := range requests {
		if request.Cmd == svc.Stop || request.Cmd == svc.Shutdown {
			break
		}
	}
	return false, 0
}

// printServiceState prints whether a service runs.
func printServiceState(args []string) error {
	manager, err := mgr.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = manager.Disconnect() }()
	opened, err := manager.OpenService(args[0])
	if err != nil {
		return err
	}
	defer opened.Close()
	status, err := opened.Query()
	if err == nil {
		fmt.Println(status.State == svc.Running)
	}
	return err
}

// printVersion prints the version that Windows reports.
func printVersion([]string) error {
	v := windows.RtlGetVersion()
	fmt.Printf("%d.%d.%d type %d\n", v.MajorVersion, v.MinorVersion, v.BuildNumber, v.ProductType)
	return nil
}

// printAlive prints whether a process runs.
func printAlive(args []string) error {
	var pid uint32
	if _, err := fmt.Sscan(args[0], &pid); err != nil {
		return err
	}
	const stillActive = 259
	var code uint32
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err == nil {
		err = windows.GetExitCodeProcess(process, &code)
		_ = windows.CloseHandle(process)
	}
	fmt.Println(err == nil && code == stillActive)
	return nil
}

// printGreeting connects to an address and prints the greeting.
func printGreeting(args []string) error {
	conn, err := net.Dial("tcp", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadString('\n')
	fmt.Print(line)
	return err
}
