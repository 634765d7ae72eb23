package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/sftp"

	"github.com/windows-machine-config/wmco/test/witness/question"
)

// withSFTP starts the SFTP server of OpenSSH for Windows like sshd, on pipes instead of a session, and passes a
// temporary directory to do.
func withSFTP(do func(client *sftp.Client, folder string) error) error {
	folder, err := os.MkdirTemp("", ownName)
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	server := exec.Command(filepath.Join(os.Getenv("SystemRoot"), "System32", "OpenSSH", "sftp-server.exe"))
	in, err := server.StdinPipe()
	if err != nil {
		return err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Wait() }()
	defer in.Close()
	client, err := sftp.NewClientPipe(out, in)
	if err != nil {
		return err
	}
	return do(client, folder)
}

// remotePath returns the path of a file in SFTP notation.
func remotePath(path ...string) string { return "/" + filepath.ToSlash(filepath.Join(path...)) }

func probeLinks(e *question.Links) error {
	return withSFTP(func(client *sftp.Client, folder string) error {
		target, junction, symlink := filepath.Join(folder, "target"), filepath.Join(folder, "junction"), filepath.Join(folder, "symlink")
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		kept := filepath.Join(target, "kept")
		if err := os.WriteFile(kept, nil, 0o600); err != nil {
			return err
		}
		if printed, err := exec.Command("cmd.exe", "/c", "mklink", "/j", junction, target).CombinedOutput(); err != nil {
			return fmt.Errorf("mklink: %w: %s", err, bytes.TrimSpace(printed))
		}
		if err := os.Symlink(kept, symlink); err != nil {
			return err
		}
		entries, err := client.ReadDir(remotePath(folder))
		for _, entry := range entries {
			if entry.Name() == "junction" {
				e.Listed = entry.Mode().String()
			}
		}
		if err != nil {
			return err
		}
		for path, into := range map[string]*string{junction: &e.Junction, symlink: &e.Symlink} {
			info, err := client.Lstat(remotePath(path))
			if err != nil {
				return err
			}
			*into = info.Mode().String()
		}
		e.Remove = innermostCause(client.RemoveDirectory(remotePath(junction)))
		_, err = os.Stat(kept)
		e.Target = err == nil
		return nil
	})
}

// probeUpload writes programs that no scanner has seen yet, and immediately renames each of them.
func probeUpload(e *question.Upload) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return withSFTP(func(client *sftp.Client, folder string) error {
		for ; e.Files < 10; e.Files++ {
			part, name := remotePath(folder, fmt.Sprint(e.Files, ".part")), remotePath(folder, fmt.Sprint(e.Files, ".exe"))
			file, err := client.Create(part)
			if err != nil {
				return err
			}
			_, err = file.ReadFrom(bytes.NewReader(append(content[:len(content):len(content)], rand.Text()...)))
			if err := errors.Join(err, file.Close()); err != nil {
				return err
			}
			if waited, refused := renameWithRetry(client, part, name); refused != "" {
				e.Refused = append(e.Refused, refused)
				e.Milliseconds = max(e.Milliseconds, waited.Milliseconds())
				if waited >= renameTimeout {
					e.NotRenamed++
				}
			}
		}
		return nil
	})
}

const renameTimeout = 10 * time.Second

// renameWithRetry retries until the rename succeeds, and returns the first error.
func renameWithRetry(client *sftp.Client, from, to string) (waited time.Duration, refused string) {
	started := time.Now()
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for {
		err := client.Rename(from, to)
		waited = time.Since(started)
		if err == nil || waited >= renameTimeout {
			return waited, refused
		}
		if refused == "" {
			refused = strings.TrimSpace(err.Error())
		}
		<-pace.C
	}
}
