//go:build windows

// Command sshd is the SSH and SFTP server of a Wine host. To clients it behaves like OpenSSH for Windows with
// default settings: command lines go to cmd.exe, paths are /C:/..., and a plain rename never replaces a file.
// Keys of administrators are in one file, and processes of a session end with the session. The server writes
// its events as JSON lines to its standard output.
//
// The server also keeps the host running: Wine ends when the last program ends that is no service.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

func main() {
	if err := sftp.SetSFTPExtensions("statvfs@openssh.com"); err != nil { // in particular no posix-rename
		fmt.Fprintln(os.Stderr, "sshd:", err)
		os.Exit(1)
	}
	var s server
	var users, keys, hostKey, address string
	flag.StringVar(&address, "listen", ":22", "address to listen on")
	flag.StringVar(&users, "users", "Administrator", "who may log in, separated by commas")
	flag.StringVar(&keys, "keys", "", "files with authorized keys, separated by commas")
	flag.StringVar(&hostKey, "host-key", "", "file with the private host key")
	flag.StringVar(&s.version, "version", "OpenSSH_for_Windows_8.1", "the software version that clients see")
	flag.Parse()
	s.users, s.keyFiles = strings.Split(users, ","), strings.Split(keys, ",")
	fmt.Fprintln(os.Stderr, "sshd:", s.run(address, hostKey))
	os.Exit(1)
}

// run serves connections until an error occurs.
func (s *server) run(address, hostKey string) error {
	data, err := os.ReadFile(hostKey)
	if err != nil {
		return fmt.Errorf("read the host key: %w", err)
	}
	key, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return fmt.Errorf("read the host key %s: %w", hostKey, err)
	}
	config := &ssh.ServerConfig{ServerVersion: "SSH-2.0-" + s.version, PublicKeyCallback: s.authenticateKey}
	config.AddHostKey(key)
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	go func() {
		fmt.Fprintln(os.Stderr, "sshd:", s.watchName()) // returns only on errors
	}()
	s.journal.write(wire.Up, listener.Addr().String())
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.serveConnection(conn, config)
	}
}

func (s *server) serveConnection(conn net.Conn, config *ssh.ServerConfig) {
	peer := conn.RemoteAddr().String()
	connection, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		_ = conn.Close()
		if !errors.Is(err, io.EOF) { // a client that only checks whether the port is open
			s.journal.write("login", fmt.Sprintf("refused: %v, from %s", err, peer))
		}
		return
	}
	s.journal.write("login", connection.User()+" from "+peer)
	go ssh.DiscardRequests(requests)
	for request := range channels {
		if request.ChannelType() != "session" {
			_ = request.Reject(ssh.UnknownChannelType, "this server has sessions only")
			continue
		}
		channel, requests, err := request.Accept()
		if err != nil {
			break
		}
		session := &session{server: s, channel: channel, user: connection.User(), closed: make(chan struct{}),
			peers: formatPeer(connection.RemoteAddr()) + " " + formatPeer(connection.LocalAddr())}
		go session.serveRequests(requests)
	}
	_ = connection.Close()
	s.journal.write("disconnect", connection.User()+" from "+peer)
}

// formatPeer formats an address and its port as in SSH_CONNECTION.
func formatPeer(address net.Addr) string { return strings.ReplaceAll(address.String(), ":", " ") }
