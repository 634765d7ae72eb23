package winhost

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Files of OpenSSH for Windows. All members of Administrators share one key file.
const (
	hostKeyPath                    = `C:\ProgramData\ssh\ssh_host_ed25519_key`
	administratorsAuthorizedKeys   = `C:\ProgramData\ssh\administrators_authorized_keys`
	administrator                  = "Administrator"
	errNoAccount, errNotAuthorized = loginError("the host has no such user"),
		loginError("the key is not authorized for this user")
)

type loginError string

func (e loginError) Error() string { return string(e) }

// writeKeys writes the host key, if there is none, and the keys of the options.
func (h *Host) writeKeys() error {
	if err := h.keepHostKey(); err != nil {
		return err
	}
	files := map[string][]ssh.PublicKey{}
	for user, keys := range h.options.AuthorizedKeys {
		path, _ := h.keyFile(user) // named in the options, so there is an account
		files[path] = append(files[path], keys...)
	}
	for path, keys := range files {
		if err := h.writeAuthorizedKeys(path, keys); err != nil {
			return err
		}
	}
	return nil
}

// SetAuthorizedKeys replaces the key file of a user, for administrators the shared file. The file is read at each
// login.
func (h *Host) SetAuthorizedKeys(user string, keys ...ssh.PublicKey) error {
	path, ok := h.keyFile(user)
	if !ok {
		return fmt.Errorf("set the SSH keys of %s on %s: %w", user, h.machine.Name(), errNoAccount)
	}
	return h.writeAuthorizedKeys(path, keys)
}

// AuthorizeKey adds a key to the key file of a user unless the file contains the key. Existing keys are kept.
func (h *Host) AuthorizeKey(user string, key ssh.PublicKey) error {
	path, ok := h.keyFile(user)
	if !ok {
		return fmt.Errorf("authorize an SSH key of %s on %s: %w", user, h.machine.Name(), errNoAccount)
	}
	data, err := h.machine.Drive().ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("authorize an SSH key of %s on %s: %w", user, h.machine.Name(), err)
	}
	if hasAuthorizedKey(data, key) {
		return nil
	}
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		data = append(data, "\r\n"...)
	}
	data = append(data, bytes.TrimSpace(ssh.MarshalAuthorizedKey(key))...)
	return h.writeFile(path, append(data, "\r\n"...))
}

func (h *Host) writeAuthorizedKeys(path string, keys []ssh.PublicKey) error {
	var lines []byte
	for _, key := range keys {
		lines = append(lines, bytes.TrimSpace(ssh.MarshalAuthorizedKey(key))...)
		lines = append(lines, "\r\n"...)
	}
	return h.writeFile(path, lines)
}

func (h *Host) writeFile(path string, data []byte) error {
	drive := h.machine.Drive()
	if err := drive.MkdirAll(path[:strings.LastIndexByte(path, '\\')]); err != nil {
		return err
	}
	return drive.WriteFile(path, data)
}

// isAdministrator reports whether a user is a member of Administrators.
func (h *Host) isAdministrator(user string) bool {
	path, known := h.keyFile(user)
	return known && path == administratorsAuthorizedKeys
}

// keyFile returns the key file of a user. User names are case-insensitive.
func (h *Host) keyFile(user string) (path string, ok bool) {
	is := func(name string) bool { return strings.EqualFold(name, user) }
	if slices.ContainsFunc(h.options.StandardUsers, is) {
		return homeDirectory(user) + `\.ssh\authorized_keys`, true
	}
	ok = slices.ContainsFunc(h.options.Administrators, is)
	for name := range h.options.AuthorizedKeys {
		ok = ok || is(name)
	}
	return administratorsAuthorizedKeys, ok || is(administrator)
}

// homeDirectory returns the profile of a user. For DOMAIN\user and user@domain, Windows uses only the name of the user.
func homeDirectory(user string) string {
	name, _ := splitUser(user)
	return `C:\Users\` + name
}

// splitUser returns the name of a user and the domain; empty for a local account.
func splitUser(user string) (name, domain string) {
	if domain, name, found := strings.Cut(user, `\`); found {
		return name, domain
	}
	name, domain, _ = strings.Cut(user, "@")
	return name, domain
}

// checkAuthorized checks whether the current key files allow the user to log in with the key.
func (h *Host) checkAuthorized(user string, key ssh.PublicKey) error {
	if h.faults.findActive(RejectKey) != nil {
		return errNotAuthorized
	}
	path, ok := h.keyFile(user)
	if !ok {
		return errNoAccount
	}
	data, err := h.machine.Drive().ReadFile(path)
	if err != nil || !hasAuthorizedKey(data, key) {
		return errNotAuthorized // sshd also does this for a missing file
	}
	return nil
}

// hasAuthorizedKey reports whether a key file contains a key. Lines that are no keys are skipped.
func hasAuthorizedKey(file []byte, key ssh.PublicKey) bool {
	for len(file) > 0 {
		authorized, _, _, rest, err := ssh.ParseAuthorizedKey(file)
		if err != nil {
			return false
		}
		if bytes.Equal(authorized.Marshal(), key.Marshal()) {
			return true
		}
		file = rest
	}
	return false
}

// keepHostKey creates the host key if the drive has none, as sshd does at startup.
func (h *Host) keepHostKey() error {
	_, err := h.machine.Drive().Stat(hostKeyPath)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key := h.options.HostKey
	if key == nil {
		if key, err = newHostKey(h.options.Rand); err != nil {
			return err
		}
	}
	block, err := ssh.MarshalPrivateKey(key, h.machine.Name())
	if err != nil {
		return fmt.Errorf("write host key: %w", err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("write host key: %w", err)
	}
	if err := h.writeFile(hostKeyPath+".pub", ssh.MarshalAuthorizedKey(public)); err != nil {
		return err
	}
	return h.writeFile(hostKeyPath, pem.EncodeToMemory(block))
}

func newHostKey(rand io.Reader) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(rand, seed); err != nil {
		return nil, fmt.Errorf("make host key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// hostKey returns the key that the host currently presents.
func (h *Host) hostKey() (ssh.Signer, error) {
	if changed := h.faults.findActive(ChangedHostKey); changed != nil {
		return changed.hostKey, nil
	}
	data, err := h.machine.Drive().ReadFile(hostKeyPath)
	if err != nil {
		return nil, err
	}
	return ssh.ParsePrivateKey(data)
}

// HostKey returns the public part of the key that the host currently presents.
func (h *Host) HostKey() (ssh.PublicKey, error) {
	signer, err := h.hostKey()
	if err != nil {
		return nil, fmt.Errorf("host key of %s: %w", h.machine.Name(), err)
	}
	return signer.PublicKey(), nil
}
