// Package userdata makes the script that a cloud hands to a new Windows machine, so that the operator can log in to it:
// an SSH server on port 22 that accepts the operator's key, and the ports of a node open. Nothing in the script is
// secret.
//
// templates/script.tmpl is the script; beside it is one file for each form in which platforms run it, which says which
// program runs it, when and as which user. Scripts are ASCII, since Windows PowerShell 5.1 takes a file without byte
// order mark for the machine's code page, and have LF at the ends of lines: PowerShell and all agents take it, Secrets
// and golden files stay readable, and it saves room where 16 KiB are the limit.
package userdata

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"strings"
	"text/template"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/crypto/ssh"
)

const (
	// SecretName is the Secret that Machines name as their user data.
	SecretName = "windows-user-data"
	// SecretKey is the key in it.
	SecretKey = "userData"
)

// Version is the version of the header that Generate writes.
const Version = 1

// ports are what a node must be reached on: SSH, and the kubelet.
var ports = [...]int{22, 10250}

// Settings are the effects of a script. They are comments at its beginning.
type Settings struct {
	// Version of the header. ParseHeader refuses versions that it does not know.
	Version int
	// User is the administrator who may log in with the key.
	User string
	// PublicKey is a line of authorized_keys, without comment and without newline.
	PublicKey string
	// Ports are opened for TCP in the Windows firewall.
	Ports []int
}

//go:embed templates
var files embed.FS

// forms are the templates by platform; others get the plain one.
var forms = map[configv1.PlatformType]string{
	configv1.AWSPlatformType:     "aws.ps1.tmpl",
	configv1.AzurePlatformType:   "azure.ps1.tmpl",
	configv1.GCPPlatformType:     "gcp.ps1.tmpl",
	configv1.NutanixPlatformType: "cloudbase-init.ps1.tmpl",
	configv1.VSpherePlatformType: "cloudbase-init.ps1.tmpl",
}

const plainForm = "plain.ps1.tmpl"

// User returns the administrator account that the operator uses on Machines of a platform. The Machine API's provider
// for Azure makes one of its own.
func User(platform string) string {
	if configv1.PlatformType(platform) == configv1.AzurePlatformType {
		return "capi"
	}
	return "Administrator"
}

// Generate makes the user data for Windows machines of a platform, as it stands under SecretKey of Secret SecretName.
// The platform is an Infrastructure platform type: AWS, Azure, GCP, …; platforms without their own form get the form of
// None. Equal inputs give equal scripts.
func Generate(platform string, publicKey ssh.PublicKey) ([]byte, error) {
	if publicKey == nil {
		return nil, errors.New("make the user data: there is no public key")
	}
	form, ok := forms[configv1.PlatformType(platform)]
	if !ok {
		form = plainForm
	}
	all, err := template.ParseFS(files, "templates/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("read the templates of the user data: %w", err)
	}
	settings := Settings{
		Version: Version, User: User(platform), Ports: ports[:],
		PublicKey: strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(publicKey)), "\n"),
	}
	var script bytes.Buffer
	if err := all.ExecuteTemplate(&script, form, settings); err != nil {
		return nil, fmt.Errorf("make the user data for platform %s: %w", platform, err)
	}
	return script.Bytes(), nil
}
