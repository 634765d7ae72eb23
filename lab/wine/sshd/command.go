//go:build windows

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/windows"
)

// runCommand passes the line to cmd.exe, in the quotes that cmd.exe removes, and streams the output. All
// processes of the command are in one job object and end when the session is closed or the command has ended,
// whichever comes first. Services that the command starts are not in the job. The connection is the value of
// SSH_CONNECTION.
func runCommand(line, connection string, channel ssh.Channel, closed <-chan struct{}) (exitCode uint32, err error) {
	shell := os.Getenv("ComSpec")
	command := &exec.Cmd{
		Path: shell, Stdout: channel, Stderr: channel.Stderr(), Dir: os.Getenv("USERPROFILE"),
		Env: append(os.Environ(), "SSH_CONNECTION="+connection), // wmco-lab-power.dll recognizes sessions by it
		SysProcAttr: &syscall.SysProcAttr{
			// Without /s, Wine's cmd.exe searches for a file with the name of the complete line, and fails for
			// lines of 1000 characters.
			CmdLine:       `"` + shell + `" /s /c "` + line + `"`,
			CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP,
		},
	}
	// The command sees the end of its input when the client sends it. The server does not wait for a client
	// that never does.
	stdin, err := command.StdinPipe()
	if err != nil {
		return 1, err
	}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 1, fmt.Errorf("make a job object: %w", err)
	}
	defer func() {
		endJob(job)
		_ = windows.CloseHandle(job)
	}()
	if err := command.Start(); err != nil {
		return 1, fmt.Errorf("start the shell: %w", err)
	}
	go func() {
		_, _ = io.Copy(stdin, channel) // ends with the session at the latest
		_ = stdin.Close()
	}()
	if err := admitProcess(job, command.Process.Pid); err != nil {
		_ = command.Process.Kill()
		_ = command.Wait()
		return 1, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-closed:
			endJob(job)
		case <-ended:
		}
	}()
	_ = command.Wait()                                  // the state has the result
	return uint32(command.ProcessState.ExitCode()), nil // a 32-bit code
}

var ntResumeProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// admitProcess adds the suspended process to the job and resumes it.
func admitProcess(job windows.Handle, pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|windows.PROCESS_SUSPEND_RESUME,
		false, uint32(pid))
	if err != nil {
		return fmt.Errorf("open the shell's process: %w", err)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		return fmt.Errorf("put the shell into a job object: %w", err)
	}
	if status, _, _ := ntResumeProcess.Call(uintptr(process)); status != 0 {
		return fmt.Errorf("let the shell run: %w", windows.NTStatus(status))
	}
	return nil
}
