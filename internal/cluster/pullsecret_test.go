package cluster

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func encodeBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// L-02
func TestPullSecret_NodesHaveItsCredentials(t *testing.T) {
	for name, test := range map[string]struct{ auths, want string }{
		"as base64": {`{"quay.io":{"auth":"` + encodeBase64("u:p") + `","email":"u@example.com"}}`,
			"quay.io=u:p"},
		"as user and password": {`{"quay.io":{"username":"u","password":"p:q"}}`, "quay.io=u:p:q"},
		"as base64 before user and password": {`{"quay.io":{"username":"x","password":"y","auth":"` + encodeBase64("u:p") +
			`"}}`, "quay.io=u:p"},
		"as base64 without padding": {`{"quay.io":{"auth":"` + strings.TrimRight(encodeBase64("u:pp"), "=") + `"}}`,
			"quay.io=u:pp"},
		"as docker pads them": {`{"quay.io":{"auth":"` + encodeBase64("u:p\x00\x00") + `"}}`, "quay.io=u:p"},
		"for a part of a registry": {`{"quay.io:443/a/b":{"auth":"` + encodeBase64("u:p") + `"}}`,
			"quay.io:443/a/b=u:p"},
		"for Docker Hub as docker login wrote": {`{"https://index.docker.io/v1/":{"auth":"` + encodeBase64("u:p") + `"}}`,
			"index.docker.io=u:p"},
		"by the plain name where there are two": {`{"https://quay.io":{"auth":"` + encodeBase64("a:b") + `"},"quay.io":{"auth":"` +
			encodeBase64("u:p") + `"},"http://quay.io/v2/":{"auth":"` + encodeBase64("c:d") + `"}}`, "quay.io=u:p"},
		"sorted": {`{"b.io":{"auth":"` + encodeBase64("u:p") + `"},"a.io":{"auth":"` + encodeBase64("u:p") +
			`"}}`, "a.io=u:p b.io=u:p"},
		"but not those for reporting to Red Hat": {`{"cloud.openshift.com":{"auth":"` + encodeBase64("u:p") + `"}}`, ""},
		"but no entry without credentials":       {`{"quay.io":{"auth":""},"gcr.io":{}}`, ""},
		"with a password beside a token": {`{"quay.io":{"auth":"` + encodeBase64("u:p") + `","identitytoken":"t"}}`,
			"quay.io=u:p"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, notices := withObjects(t, pullSecretWith(`{"auths":`+test.auths+`,"credsStore":"x"}`)).readValid(t)
			var got []string
			for _, credential := range facts.Registries.Credentials {
				decoded, err := base64.StdEncoding.DecodeString(string(credential.Auth))
				if err != nil {
					t.Error(err)
				}
				got = append(got, credential.Registry+"="+string(decoded))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			expectNotices(t, notices)
		})
	}
}

// L-02
func TestPullSecret_UnusableCredentialsReportedAndSkipped(t *testing.T) {
	for name, test := range map[string]struct{ entry, want string }{
		"invalid base64":         {`"quay.io":{"auth":"canary!"}`, `auths["quay.io"]|not base64`},
		"base64 without a colon": {`"quay.io":{"auth":"` + encodeBase64("canary") + `"}`, `auths["quay.io"]|base64 of <user>`},
		"base64 without a user": {`"quay.io":{"auth":"` + encodeBase64(":canary") + `"}`,
			`auths["quay.io"]|base64 of <user>`},
		"a user without a password": {`"quay.io":{"username":"canary"}`, `auths["quay.io"]|without a password`},
		"a password without a user": {`"quay.io":{"password":"canary"}`, `auths["quay.io"]|without a user`},
		"a user with a colon":       {`"quay.io":{"username":"canary:x","password":"canary"}`, `auths["quay.io"]|colon`},
		"an identity token":         {`"quay.io":{"identitytoken":"canary"}`, `auths["quay.io"]|token`},
		"an identity token and a user": {`"quay.io":{"auth":"` + encodeBase64("canary:") + `","identitytoken":"canary"}`,
			`auths["quay.io"]|token`},
		"a registry's token":       {`"quay.io":{"registrytoken":"canary"}`, `auths["quay.io"]|token`},
		"a number":                 {`"quay.io":{"auth":4711}`, `auths["quay.io"]|JSON`},
		"no object":                {`"quay.io":"canary"`, `auths["quay.io"]|JSON`},
		"a name with a user in it": {`"https://user:canary@quay.io":{"auth":"` + encodeBase64("u:p") + `"}`, "entry 2 of auths"},
		"a name of all registries": {`"*.example.com":{"auth":"` + encodeBase64("u:p") + `"}`, "entry 1 of auths"},
		"a name that is empty":     {`"":{"auth":"` + encodeBase64("u:p") + `"}`, "entry 1 of auths"},
	} {
		t.Run(name, func(t *testing.T) {
			facts, notices := withObjects(t, pullSecretWith(`{"auths":{`+test.entry+`,"good.io":{"auth":"`+
				encodeBase64("u:p")+`"}}}`)).readValid(t)
			expectNotices(t, notices, "Secret openshift-config/pull-secret|key .dockerconfigjson|"+test.want)
			if credentials := facts.Registries.Credentials; len(credentials) != 1 || credentials[0].Registry != "good.io" {
				t.Errorf("got %v", credentials)
			}
			if text := notices[0].String(); strings.Contains(text, "canary") || strings.Contains(text, encodeBase64("canary")) {
				t.Errorf("notice %q repeats a value", text)
			}
		})
	}
}

// L-02
func TestPullSecret_InvalidSecretIsError(t *testing.T) {
	for name, secret := range map[string]*corev1.Secret{
		"no JSON":                           pullSecretWith(`canary`),
		"a list":                            pullSecretWith(`["canary"]`),
		"auths a list":                      pullSecretWith(`{"auths":["canary"]}`),
		"empty":                             pullSecretWith(``),
		"null":                              pullSecretWith(`null`),
		"no auths, as the older .dockercfg": pullSecretWith(`{"quay.io":{"auth":"canary"}}`),
		"another key": {ObjectMeta: pullSecretWith("").ObjectMeta,
			Data: map[string][]byte{"canary": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withObjects(t, secret).read(t)
			var fault *Error
			if !errors.As(err, &fault) || fault.Object != "Secret openshift-config/pull-secret" ||
				fault.Field != "key .dockerconfigjson" || strings.Contains(err.Error(), "canary") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// L-02
func TestAuthorizationFor_UsesLongestMatchingEntry(t *testing.T) {
	credentials := []nodespec.Credential{
		{Registry: "index.docker.io", Auth: "hub"}, {Registry: "m.io", Auth: "host"}, {Registry: "m.io/a", Auth: "a"},
		{Registry: "m.io/a/b", Auth: "ab"}, {Registry: "m.io:5000", Auth: "port"},
	}
	for repository, want := range map[string]nodespec.Secret{
		"m.io": "host", "m.io/x": "host", "m.io/a": "a", "m.io/ab": "host", "m.io/a/c": "a", "m.io/a/b": "ab",
		"m.io/a/b/c": "ab", "m.io:5000/a": "port", "n.io": "", "docker.io/library": "hub",
	} {
		host, path, _ := strings.Cut(repository, "/")
		if got := authorizationFor(credentials, host, path); got != want {
			t.Errorf("%s gets %q, want %q", repository, string(got), string(want))
		}
	}
}

// L-02, L-03
func TestPullSecret_CredentialsForMirroredPartNotUsed(t *testing.T) {
	secret := pullSecretWith(`{"auths":{"quay.io":{"auth":"` + encodeBase64("u:p") + `"},"quay.io/a":{"auth":"` +
		encodeBase64("u:canary") + `"},"gcr.io/a":{"auth":"` + encodeBase64("u:p") + `"},` +
		`"https://index.docker.io/v1/":{"auth":"` + encodeBase64("u:p") + `"}}}`)
	t.Run("which is reported", func(t *testing.T) {
		_, notices := withObjects(t, secret, digestMirrors("a", digestEntry("quay.io/b", "m.example.com/b"),
			digestEntry("docker.io", "m.example.com/hub"))).readValid(t)
		expectNotices(t, notices, `Secret openshift-config/pull-secret|auths["quay.io/a"]|mirrors`)
		if strings.Contains(notices[0].String(), "canary") {
			t.Error(notices[0])
		}
	})
	t.Run("which nobody needs to know where only the mirrors are asked", func(t *testing.T) {
		_, notices := withObjects(t, secret, digestMirrors("a", withoutSource(digestEntry("quay.io", "m.example.com")))).readValid(t)
		expectNotices(t, notices)
	})
}
