// Package secretscan searches for leaked secrets.
package secretscan

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

// Secrets are confidential values by kind.
type Secrets map[string][]string

// minPartLength is the minimum length in characters of a part of a key that cannot occur by chance.
const minPartLength = 32

// AddKey adds a private key in PEM form: all lines except the first, which is equal for all keys of a kind, and
// the complete key in the encoding of a Secret.
func (s Secrets) AddKey(what string, key []byte) {
	first := true
	for line := range strings.Lines(string(key)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "-----") || len(line) < minPartLength {
			continue
		}
		if !first {
			s[what] = append(s[what], line)
		}
		first = false
	}
	encoded := base64.StdEncoding.EncodeToString(key)
	s[what] = append(s[what], encoded[len(encoded)/2:][:minPartLength])
}

// AddPair adds the private key of a file with a certificate and its key. The first line of the key contains the
// secret number, which precedes the public key (RFC 5915). The public key is also in the certificate and its
// request.
func (s Secrets) AddPair(what string, pair []byte) error {
	const header = "-----BEGIN EC PRIVATE KEY-----\n"
	begin := bytes.Index(pair, []byte(header))
	if begin < 0 || len(pair) < begin+len(header)+52 {
		return fmt.Errorf("%s holds no private key", what)
	}
	key := pair[begin:]
	number := key[len(header)+12 : len(header)+52]                   // bytes 9 to 39 of 7 to 39
	inSecret := base64.StdEncoding.EncodeToString(key[:81])[45/3*4:] // full groups of three bytes of the number
	s[what] = append(s[what], string(number), inSecret)
	return nil
}

// In returns the secrets that a text contains.
func (s Secrets) In(text []byte) (found []string) {
	for what, values := range s {
		if slices.ContainsFunc(values, func(value string) bool { return bytes.Contains(text, []byte(value)) }) {
			found = append(found, what)
		}
	}
	slices.Sort(found)
	return found
}

// Object is an inspected object of the API.
type Object struct {
	Kind, Namespace, Name string
	// Holds are the secrets in the object.
	Holds []string
}

// InCluster inspects every object of the API that can be listed.
func (s Secrets) InCluster(ctx context.Context, config *rest.Config) (objects []Object, err error) {
	err = cluster.EachObject(ctx, config, func(object *unstructured.Unstructured) error {
		result, err := s.inObject(object)
		objects = append(objects, result)
		return err
	})
	return objects, err
}

func (s Secrets) inObject(object *unstructured.Unstructured) (Object, error) {
	result := Object{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}
	text, err := json.Marshal(object.Object)
	if err != nil {
		return result, fmt.Errorf("look at %s %s: %w", result.Kind, result.Name, err)
	}
	result.Holds = s.In(text)
	return result, nil
}
