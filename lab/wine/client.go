package wine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// Result is the outcome of a command.
type Result struct {
	Stdout, Stderr string
	ExitCode       int
}

// Connect logs in as the first of Options.Users, with a lab key that is always authorized. The caller closes
// the client. The end of ctx ends only the connection attempt.
func (h *Host) Connect(ctx context.Context) (*ssh.Client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", h.Address())
	if err != nil {
		return nil, fmt.Errorf("connect to the Wine host %s: %w", h.options.Name, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	connection, channels, requests, err := ssh.NewClientConn(conn, h.Address(), &ssh.ClientConfig{
		User: h.options.Users[0], Auth: []ssh.AuthMethod{ssh.PublicKeys(h.labKey)},
		HostKeyCallback: ssh.FixedHostKey(h.hostKey),
	})
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("log in to the Wine host %s: %w", h.options.Name, err)
	}
	return ssh.NewClient(connection, channels, requests), nil
}

// Exec runs one command line on a separate connection, as `ssh host line` does: cmd.exe parses the line. A
// failed command is reported by the exit code, not by an error. An error means that the command did not run to
// completion. The end of ctx ends the command.
func (h *Host) Exec(ctx context.Context, line string) (Result, error) {
	client, err := h.Connect(ctx)
	if err != nil {
		return Result{}, err
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	result, err := Exec(client, line)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return result, fmt.Errorf("run %q on the Wine host %s: %w", line, h.options.Name, err)
	}
	return result, nil
}

// Exec runs one command line on a connection. See Host.Exec.
func Exec(client *ssh.Client, line string) (Result, error) {
	session, err := client.NewSession()
	if err != nil {
		return Result{}, err
	}
	defer session.Close()
	var stdout, stderr bytes.Buffer
	session.Stdout, session.Stderr = &stdout, &stderr
	err = session.Run(line)
	result := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		result.ExitCode, err = exit.ExitStatus(), nil
	}
	return result, err
}

// Upload copies a local file to a Windows path over SFTP. Missing directories are created and an existing file
// is replaced.
func (h *Host) Upload(ctx context.Context, local, windows string) error {
	if err := h.uploadFile(ctx, local, windows); err != nil {
		return fmt.Errorf("send %s to the Wine host %s: %w", windows, h.options.Name, err)
	}
	return nil
}

func (h *Host) uploadFile(ctx context.Context, local, windows string) error {
	source, err := os.Open(local)
	if err != nil {
		return err
	}
	defer source.Close()
	connection, err := h.Connect(ctx)
	if err != nil {
		return err
	}
	defer connection.Close()
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	client, err := sftp.NewClient(connection, sftp.UseConcurrentWrites(true))
	if err != nil {
		return err
	}
	defer client.Close()
	name := "/" + strings.ReplaceAll(windows, `\`, "/")
	if err := client.MkdirAll(path.Dir(name)); err != nil {
		return err
	}
	target, err := client.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
