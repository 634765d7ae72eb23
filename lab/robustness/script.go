package robustness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Script is the complete input of a run: actions, and their shape.
type Script struct {
	Shape   Shape
	Actions []Action
}

// String returns the script in the format of Parse: the shape in the first line, and one action in each further line.
func (s Script) String() string {
	var b strings.Builder
	text, err := json.Marshal(s.Shape)
	if err != nil {
		return err.Error() // impossible for strings and numbers
	}
	b.Write(append(text, '\n'))
	for _, a := range s.Actions {
		b.WriteString(a.String() + "\n")
	}
	return b.String()
}

// Parse parses a script.
func Parse(r io.Reader) (s Script, err error) {
	scanner, first := bufio.NewScanner(r), true
	for scanner.Scan() {
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		if first {
			if err := s.Shape.read(line); err != nil {
				return s, fmt.Errorf("%q is no shape, which must come before the actions: %w", line, err)
			}
			first = false
			continue
		}
		var a Action
		if err := a.read(line, s.Shape); err != nil {
			return s, fmt.Errorf("%q is no action: %w", line, err)
		}
		s.Actions = append(s.Actions, a)
	}
	if first {
		return s, errors.Join(errors.New("there is no shape"), scanner.Err())
	}
	return s, scanner.Err()
}

func (s *Shape) read(line []byte) error {
	if err := decodeStrict(line, s); err != nil {
		return err
	}
	unknown := func(host string) bool { return !slices.Contains(s.Hosts, host) }
	switch {
	case len(s.Hosts) == 0 || s.Listed < 0 || s.Listed > len(s.Hosts):
		return fmt.Errorf("%d of its %d hosts are listed", s.Listed, len(s.Hosts))
	case slices.ContainsFunc(s.Named, unknown) || s.Impostor != "" && unknown(s.Impostor):
		return errors.New("it names a host that it does not have")
	case s.Releases < 1:
		return errors.New("it has no release of the operator")
	}
	return nil
}

func (a *Action) read(line []byte, shape Shape) error {
	if err := decodeStrict(line, a); err != nil {
		return err
	}
	if _, known := kinds[a.Kind]; !known {
		return fmt.Errorf("there is no kind %q", a.Kind)
	}
	if a.Host != "" && a.Host != youngestMachine && !slices.Contains(shape.Hosts, a.Host) {
		return fmt.Errorf("the shape has no host %q", a.Host)
	}
	return nil
}

func decodeStrict(line []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
