package cluster

import (
	"encoding/hex"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"

	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
)

func configWithTrust(bundle string) *machineconfigv1.ControllerConfig {
	config := controllerConfigWith("")
	config.Spec.AdditionalTrustBundle = []byte(bundle)
	return config
}

func registryCA(bundles ...machineconfigv1.ImageRegistryBundle) *machineconfigv1.ControllerConfig {
	config := controllerConfigWith("")
	config.Spec.ImageRegistryBundleUserData = bundles
	return config
}

func pemBlock(kind, content string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte(content)}))
}

// strange is valid DER that Go rejects as a certificate.
var strange = pemBlock("CERTIFICATE", "\x30\x03\x02\x01\x01")

// The purposes of certificates in DER, in hexadecimal.
const (
	oidAny    = "0604551d2500"
	oidServer = "06082b06010505070301"
	oidMail   = "06082b06010505070304"
)

// opensslCertificate returns a certificate in the format of openssl x509 -trustout, with the given settings in
// hexadecimal.
func opensslCertificate(t *testing.T, certificate, settings string) string {
	t.Helper()
	decoded, _ := pem.Decode([]byte(certificate))
	behind, err := hex.DecodeString(settings)
	if err != nil {
		t.Fatal(err)
	}
	return pemBlock("TRUSTED CERTIFICATE", string(decoded.Bytes)+string(behind))
}

// L-01
func TestTrustBundle_NodesTrustItsAuthorities(t *testing.T) {
	a, b := newAuthorityPEM(t, "a"), newAuthorityPEM(t, "b")
	both := []string{a, b}
	slices.Sort(both)
	for name, test := range map[string]struct {
		bundle  string
		want    []string
		notices []string
	}{
		"one authority":                           {a, []string{a}, nil},
		"two, in whatever order":                  {b + a, both, nil},
		"one twice":                               {a + b + a, both, nil},
		"with comments around":                    {"# ours\n" + a + "\n\n# theirs\n" + b + "end", both, nil},
		"with the line ends of Windows":           {strings.ReplaceAll(a, "\n", "\r\n"), []string{a}, nil},
		"without a key that got there by mistake": {a + pemBlock("PRIVATE KEY", "canary"), []string{a}, nil},
		"without what Go cannot read, and says so": {a + strange + b, both,
			[]string{"ControllerConfig machine-config-controller|spec.additionalTrustBundle|certificate 2"}},
		"nobody, when there is nothing but space": {" \n", nil, nil},
		"one in openssl's own form":               {opensslCertificate(t, a, ""), []string{a}, nil},
		"one in that form, with a name only":      {opensslCertificate(t, a, "300a0c0861206e616d652121"), []string{a}, nil},
		"one that may be trusted for anything":    {opensslCertificate(t, a, "30083006"+oidAny), []string{a}, nil},
		"one that is for servers and for mail, and says so": {opensslCertificate(t, a, "30163014"+oidServer+oidMail), []string{a},
			[]string{"spec.additionalTrustBundle|certificate 1 limit it to some purposes|trust it for all"}},
		// Written by: openssl x509 -trustout -addtrust serverAuth -addreject emailProtection -setalias "an alias"
		"one that openssl has written, with a name": {opensslCertificate(t, a, "3022300a"+oidServer+"a00a"+oidMail+"0c08616e20616c696173"), []string{a},
			[]string{"certificate 1 limit it to some purposes"}},
		"one that is not for mail, and says so": {b + opensslCertificate(t, a, "300ca00a"+oidMail), both,
			[]string{"certificate 2 limit it to some purposes"}},
		"not one that servers may not use": {b + opensslCertificate(t, a, "300ca00a"+oidServer), []string{b},
			[]string{"certificate 2 do not allow TLS servers|do not trust it"}},
		"not one that nobody may use": {b + opensslCertificate(t, a, "3008a006"+oidAny), []string{b}, []string{"certificate 2 do not allow"}},
		"not one for mail only":       {b + opensslCertificate(t, a, "300c300a"+oidMail), []string{b}, []string{"certificate 2 do not allow"}},
		// openssl verify -purpose sslserver rejects its certificates, and accepts those with settings of 3000.
		"not one that is trusted for nothing":        {b + opensslCertificate(t, a, "30023000"), []string{b}, []string{"certificate 2 do not allow"}},
		"not one with settings of another form":      {b + opensslCertificate(t, a, "0500"), []string{b}, []string{"or cannot be read"}},
		"not one with damaged settings":              {b + opensslCertificate(t, a, "300ca00affff"), []string{b}, []string{"or cannot be read"}},
		"not one with something behind its settings": {b + opensslCertificate(t, a, "30000500"), []string{b}, []string{"or cannot be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.clientCA = configWithTrust(test.bundle)
			facts, notices := f.readValid(t)
			if !slices.Equal(facts.TrustedCAs, test.want) {
				t.Errorf("got %q", facts.TrustedCAs)
			}
			expectNotices(t, notices, test.notices...)
		})
	}
}

// L-01
func TestTrustBundle_DamagedBundleIsError(t *testing.T) {
	a := newAuthorityPEM(t, "a")
	for name, bundle := range map[string]string{
		"text":                               "canary",
		"a key only":                         pemBlock("PRIVATE KEY", "canary"),
		"a certificate that is cut short":    a + a[:len(a)/2],
		"a certificate in bad base64":        a + strings.Replace(a, "M", "?", 3),
		"PEM of something else":              a + pemBlock("CERTIFICATE", "canary"),
		"one of openssl's that is damaged":   a + pemBlock("TRUSTED CERTIFICATE", "canary"),
		"one of openssl's that is cut short": a + strings.Split(opensslCertificate(t, a, ""), "\n-----END")[0],
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.clientCA = configWithTrust(bundle)
			_, err := f.read(t)
			var fault *Error
			if !errors.As(err, &fault) || fault.Field != "spec.additionalTrustBundle" ||
				strings.Contains(err.Error(), "canary") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

// L-02
func TestRegistries_VerifiedWithTheirAuthorities(t *testing.T) {
	a, b := newAuthorityPEM(t, "a"), newAuthorityPEM(t, "b")
	t.Run("by host, with the port behind two dots, in both lists", func(t *testing.T) {
		f := newFixture(t)
		f.clientCA = registryCA(machineconfigv1.ImageRegistryBundle{File: "registry.example.com..5000", Data: []byte(a)},
			machineconfigv1.ImageRegistryBundle{File: "Registry.Example.COM", Data: []byte(b)})
		f.clientCA.Spec.ImageRegistryBundleData = []machineconfigv1.ImageRegistryBundle{{File: "registry.example.com",
			Data: []byte(a + b)}}
		facts, notices := f.readValid(t)
		expectNotices(t, notices)
		expectRegistries(t, facts.Registries, "registry.example.com CA", "registry.example.com:5000 CA")
		both := []string{a, b}
		slices.Sort(both)
		if hosts := facts.Registries.Hosts; hosts[0].CA != both[0]+both[1] || hosts[1].CA != a {
			t.Errorf("got %+v", hosts)
		}
	})
	for name, test := range map[string]struct {
		file, data string
		notice     string
		registries []string
	}{
		"an invalid port":           {"registry.example.com..x", a, "spec.imageRegistryBundleUserData[0].file", nil},
		"a path":                    {`..\..\system32`, a, "spec.imageRegistryBundleUserData[0].file", nil},
		"a name that Windows keeps": {"con.example.com", a, "spec.imageRegistryBundleUserData[0].file", nil},
		"an empty name":             {"", a, "spec.imageRegistryBundleUserData[0].file", nil},
		"an invalid authority":      {"registry.example.com", "canary", "spec.imageRegistryBundleUserData[0].data", nil},
		"an authority that is strange": {"registry.example.com", a + strange, "spec.imageRegistryBundleUserData[0].data",
			[]string{"registry.example.com CA"}},
		"an authority that is cut short": {"registry.example.com", a[:len(a)/2], "spec.imageRegistryBundleUserData[0].data",
			nil},
	} {
		t.Run(name+" is reported and delays nothing", func(t *testing.T) {
			f := newFixture(t)
			f.clientCA = registryCA(machineconfigv1.ImageRegistryBundle{File: test.file, Data: []byte(test.data)})
			facts, notices := f.readValid(t)
			expectNotices(t, notices, "ControllerConfig machine-config-controller|"+test.notice)
			expectRegistries(t, facts.Registries, test.registries...)
			if strings.Contains(notices[0].String(), "canary") {
				t.Errorf("notice %q repeats content", notices[0])
			}
		})
	}
}
