//go:build windows

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/windows-machine-config/wmco/lab/wine/internal/wire"
)

type server struct {
	users    []string
	keyFiles []string
	version  string
	journal  journal
}

// authenticateKey reads the key files at each login: a new key is valid at once.
func (s *server) authenticateKey(connection ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
	if !slices.ContainsFunc(s.users, func(user string) bool { return strings.EqualFold(user, connection.User()) }) {
		return nil, fmt.Errorf("there is no user %s", connection.User())
	}
	for _, file := range s.keyFiles {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // like OpenSSH: no file, no keys
		}
		for len(data) > 0 {
			authorized, _, _, rest, err := ssh.ParseAuthorizedKey(data)
			if err != nil {
				break
			}
			if bytes.Equal(authorized.Marshal(), key.Marshal()) {
				return nil, nil
			}
			data = rest
		}
	}
	return nil, fmt.Errorf("the key %s is not authorized for %s", ssh.FingerprintSHA256(key), connection.User())
}

// journal writes events to standard output, which the first process of the host reads.
type journal struct{ mu sync.Mutex }

func (j *journal) write(kind, detail string) {
	line, err := json.Marshal(wire.Event{Kind: kind, Detail: detail})
	if err != nil {
		return // two strings can always be encoded
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n')) // no reader is left while the host is ending
}
