package wine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// AuthorizeKey adds a key to the administrator keys unless the key exists. The user must be an administrator.
// The key is valid at once and persists. A test that simulates this step of a platform agent creates the host
// without AuthorizedKeys.
func (h *Host) AuthorizeKey(user string, key ssh.PublicKey) error {
	if err := h.authorizeKey(user, key); err != nil {
		return fmt.Errorf("authorize the key %s for %s on the Wine host %s: %w", ssh.FingerprintSHA256(key), user,
			h.options.Name, err)
	}
	return nil
}

func (h *Host) authorizeKey(user string, key ssh.PublicKey) error {
	if !slices.ContainsFunc(h.options.Users, func(known string) bool { return strings.EqualFold(known, user) }) {
		return errors.New("there is no such user")
	}
	path, err := h.Path(authorizedKeysPath)
	if err != nil {
		return err
	}
	line := ssh.MarshalAuthorizedKey(key)
	present, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Contains(present, bytes.TrimSuffix(line, []byte("\n"))) {
		return err
	}
	if len(present) > 0 && !bytes.HasSuffix(present, []byte("\n")) {
		line = append([]byte("\n"), line...)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	return errors.Join(err, file.Close())
}
