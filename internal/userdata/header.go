package userdata

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// longestHeader bounds what is looked at, in bytes: the longest RSA key that SSH servers accept takes 2.8 KiB.
const longestHeader = 8 << 10

// wrappers are the lines that may stand before the header: what tells the platform's agent how to run the script.
var wrappers = []string{"<powershell>", "#ps1_sysnative"}

// userName is one that needs no quoting anywhere.
var userName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,19}$`)

// ParseHeader reads the effects of a script made by Generate. It accepts only a header as Generate writes it: a program
// that acts in the script's place must not do anything else.
func ParseHeader(script []byte) (Settings, error) {
	settings, err := parseHeader(script)
	if err != nil {
		return Settings{}, fmt.Errorf("this is not user data of the operator: %w", err)
	}
	return settings, nil
}

func parseHeader(script []byte) (s Settings, err error) {
	if len(script) > longestHeader {
		script = script[:longestHeader]
	}
	lines := header{rest: script}
	if slices.Contains(wrappers, lines.peek()) {
		_, _ = lines.next("")
	}
	version, err := lines.next("# windows-user-data ")
	if err != nil {
		return s, err
	}
	if s.Version, err = number(version, 1, 1<<20); err != nil {
		return s, fmt.Errorf("version: %w", err)
	}
	if s.Version != Version {
		return s, fmt.Errorf("its version is %d, but only %d is supported", s.Version, Version)
	}
	if s.User, err = lines.next("# user: "); err != nil {
		return s, err
	}
	if !userName.MatchString(s.User) {
		return s, fmt.Errorf("%q is not a user name", s.User)
	}
	if s.PublicKey, err = lines.next("# public-key: "); err != nil {
		return s, err
	}
	if err := checkKey(s.PublicKey); err != nil {
		return s, err
	}
	list, err := lines.next("# ports: ")
	if err != nil {
		return s, err
	}
	if s.Ports, err = parsePorts(list); err != nil {
		return s, err
	}
	if end, err := lines.next("# end of header"); err != nil || end != "" {
		return s, errors.Join(errors.New("the header has no end"), err)
	}
	return s, nil
}

// header is what is left of the lines of a script.
type header struct{ rest []byte }

// peek returns the next line, without its end.
func (h *header) peek() string {
	line, _, _ := bytes.Cut(h.rest, []byte("\n"))
	return string(line)
}

// next takes a line off and returns what follows the given beginning.
func (h *header) next(beginning string) (string, error) {
	line, rest, ended := bytes.Cut(h.rest, []byte("\n"))
	value, found := strings.CutPrefix(string(line), beginning)
	if !ended || !found {
		return "", fmt.Errorf("a line that begins with %q is missing", beginning)
	}
	h.rest = rest
	return value, nil
}

// checkKey accepts one public key as it is marshaled: no options, no comment.
func checkKey(line string) error {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return fmt.Errorf("public key: %w", err)
	}
	if string(ssh.MarshalAuthorizedKey(key)) != line+"\n" {
		return errors.New("the line of the public key contains something else")
	}
	return nil
}

// parsePorts reads ascending TCP ports.
func parsePorts(list string) ([]int, error) {
	var ports []int
	least := 1
	for text := range strings.SplitSeq(list, " ") {
		port, err := number(text, least, 65535)
		if err != nil {
			return nil, fmt.Errorf("ports: %w", err)
		}
		ports = append(ports, port)
		least = port + 1
	}
	return ports, nil
}

// number reads a decimal number as it is usually written.
func number(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || n < least || n > most {
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, least, most)
	}
	return n, nil
}
