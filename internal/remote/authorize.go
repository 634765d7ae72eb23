package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	// administratorsKeys is the default file of OpenSSH for Windows for members of the group Administrators.
	administratorsKeys = "/C:/ProgramData/ssh/administrators_authorized_keys"
	// ownKeys is the file of all other users, relative to the profile directory.
	ownKeys = ".ssh/authorized_keys"
	// maxKeysFileBytes is the maximum size of an authorized keys file in bytes; real files are smaller.
	maxKeysFileBytes = 1 << 20
)

// Authorize adds a public key for the user, who is logged in with another key. The key is added to
// C:\ProgramData\ssh\administrators_authorized_keys or to the user's own .ssh\authorized_keys, depending on the file
// that authorized the current login. The file is written in place to preserve its access list, without which sshd
// rejects the file. Existing keys are kept, and nothing is written if the key is already listed. Authorize reads the
// file again before it reports success.
func Authorize(ctx context.Context, connection *Connection, publicKey ssh.PublicKey, user string) error {
	if publicKey == nil {
		return errors.New("authorize a public key: no key is given")
	}
	err := connection.runFileOperation(ctx, "a response while authorizing the public key", connection.limits.FileTimeout,
		func(_ context.Context, s *fileSession) error {
			return addAuthorizedKey(s, publicKey, user, connection.target.Key.Signer().PublicKey())
		})
	return connection.callerError(ctx, err, func(err error) error {
		return connection.transferError("authorize the operator's new public key for user "+user, err)
	})
}

func addAuthorizedKey(s *fileSession, key ssh.PublicKey, user string, loggedInWith ssh.PublicKey) error {
	name, content, err := authorizedKeys(s, user, loggedInWith)
	if err != nil || hasKey(content, key) {
		return err
	}
	if err := appendTo(s, name, int64(len(content)), formatAppendedKey(content, key)); err != nil {
		return fmt.Errorf("add the key to %s: %w", windowsPath(name), err)
	}
	content, err = readKeys(s, name)
	if err != nil {
		return err
	}
	if !hasKey(content, key) {
		return fmt.Errorf("the key was added to %s but is missing: another program writes that file", windowsPath(name))
	}
	return nil
}

// authorizedKeys returns the name and the content of the file that authorized the login: the first file that accepts
// the key of the current login, or else the first existing file.
func authorizedKeys(s *fileSession, user string, loggedInWith ssh.PublicKey) (name string, content []byte, err error) {
	candidates := []string{administratorsKeys, path.Join(profileDirectory(s, user), ownKeys)}
	for _, candidate := range candidates {
		list, err := readKeys(s, candidate)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case name != "" && (err != nil || !hasKey(list, loggedInWith)):
			continue
		case err != nil:
			return "", nil, err
		case hasKey(list, loggedInWith):
			return candidate, list, nil
		}
		name, content = candidate, list
	}
	if name != "" {
		return name, content, nil
	}
	return "", nil, fmt.Errorf("neither %s nor %s exists: sshd_config on the host names another file; add the key to that file manually",
		windowsPath(candidates[0]), windowsPath(candidates[1]))
}

// profileDirectory returns the user's home directory, where an SFTP session starts.
func profileDirectory(s *fileSession, user string) string {
	if home, err := s.RealPath("."); err == nil {
		if _, err := sftpPath(windowsPath(home)); err == nil && strings.Count(home, "/") > 2 {
			return home
		}
	}
	return path.Join("/C:/Users", accountName(user))
}

// accountName returns the user name without the domain, as Windows names the profile of DOMAIN\user and of user@domain.
func accountName(user string) string {
	_, name, found := strings.Cut(user, `\`)
	if !found {
		name, _, _ = strings.Cut(user, "@")
	}
	return name
}

func readKeys(s *fileSession, name string) ([]byte, error) {
	file, err := s.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", windowsPath(name), err)
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKeysFileBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", windowsPath(name), err)
	}
	if len(content) > maxKeysFileBytes {
		return nil, fmt.Errorf("%s is longer than %d bytes and therefore not a list of keys", windowsPath(name), maxKeysFileBytes)
	}
	return content, nil
}

// hasKey reports whether the list contains the key without options that could prevent a login.
func hasKey(content []byte, key ssh.PublicKey) bool {
	for line := range bytes.Lines(content) {
		known, _, options, _, err := ssh.ParseAuthorizedKey(line)
		if err == nil && len(options) == 0 && bytes.Equal(known.Marshal(), key.Marshal()) {
			return true
		}
	}
	return false
}

// formatAppendedKey returns the line to append to the list, with the line ending of the existing lines.
func formatAppendedKey(content []byte, key ssh.PublicKey) []byte {
	end := "\n"
	if bytes.Contains(content, []byte("\r\n")) {
		end = "\r\n"
	}
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n") + end
	if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
		// This also terminates a line that an interrupted attempt truncated: sshd skips malformed lines.
		line = end + line
	}
	return []byte(line)
}

// appendTo appends data to an existing file without recreating the file.
func appendTo(s *fileSession, name string, size int64, data []byte) error {
	file, err := s.OpenFile(name, os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, size)
	return errors.Join(err, file.Close())
}
