// Package canary looks for secrets in places where they must not be.
package canary

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/windows-machine-config/wmco/lab/cluster"
)

// Secrets are values that nobody may see, by their kind.
type Secrets map[string][]string

// shortest is the length in characters from which a part of a key is no chance.
const shortest = 32

// AddKey enters a private key in PEM form: its lines but the first, which is the same for all keys of a kind, and the
// whole as a Secret holds it.
func (s Secrets) AddKey(what string, key []byte) {
	first := true
	for line := range strings.Lines(string(key)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") || len(line) < shortest {
			continue
		}
		if !first {
			s[what] = append(s[what], line)
		}
		first = false
	}
	encoded := base64.StdEncoding.EncodeToString(key)
	s[what] = append(s[what], encoded[len(encoded)/2:][:shortest])
}

// AddPair enters the private key of a file that holds a certificate and its key. Its first line has the secret number,
// which RFC 5915 puts before the public key: that one is in the certificate and its request.
func (s Secrets) AddPair(what string, pair []byte) error {
	const header = "-----BEGIN EC PRIVATE KEY-----\n"
	begin := bytes.Index(pair, []byte(header))
	if begin < 0 || len(pair) < begin+len(header)+52 {
		return fmt.Errorf("%s holds no private key", what)
	}
	key := pair[begin:]
	number := key[len(header)+12 : len(header)+52]                   // bytes 9 to 39 of 7 to 39
	inSecret := base64.StdEncoding.EncodeToString(key[:81])[45/3*4:] // whole groups of three bytes of the number
	s[what] = append(s[what], string(number), inSecret)
	return nil
}

// In returns the secrets that a text holds.
func (s Secrets) In(text []byte) (found []string) {
	for what, values := range s {
		if slices.ContainsFunc(values, func(value string) bool { return bytes.Contains(text, []byte(value)) }) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}

// Object is an object of the API that was looked at.
type Object struct {
	Kind, Namespace, Name string
	// Holds are the secrets in it.
	Holds []string
}

// InCluster looks at every object of the API that can be listed.
func (s Secrets) InCluster(ctx context.Context, config *rest.Config) (objects []Object, err error) {
	err = cluster.EachObject(ctx, config, func(object *unstructured.Unstructured) error {
		looked, err := s.inObject(object)
		objects = append(objects, looked)
		return err
	})
	return objects, err
}

func (s Secrets) inObject(object *unstructured.Unstructured) (Object, error) {
	looked := Object{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	text, err := json.Marshal(object.Object)
	if err != nil {
		return looked, fmt.Errorf("look at %s %s: %w", looked.Kind, looked.Name, err)
	}
	looked.Holds = s.In(text)
	return looked, nil
}
