// Package userdata generates the startup script for a new Windows machine in a cloud, so that the operator can
// log in: an SSH server on port 22 that accepts the operator's key, and open ports for a node. Nothing in the
// script is secret.
//
// templates/script.tmpl is the script. The directory also contains one file for each form of the script, which
// defines the program that runs it, the time and the user. Scripts are ASCII, since Windows PowerShell 5.1
// interprets a file without byte order mark in the machine's code page. Lines end with LF, which PowerShell and
// all agents accept: Secrets and golden files stay readable, and it saves space within the limit of 16 KiB.
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
	// SecretName is the name of the Secret with the user data of Machines.
	SecretName = "windows-user-data"
	// SecretKey is the key in the Secret.
	SecretKey = "userData"
)

// Version is the version of the header that Generate writes.
const Version = 1

// ports lists the ports required on a node: SSH, and the kubelet.
var ports = [...]int{22, 10250}

// Settings holds the effects of a script, which begins with these settings as comments.
type Settings struct {
	// Version is the version of the header. ParseHeader refuses unknown versions.
	Version int
	// User is the administrator account for login with the key.
	User string
	// PublicKey is a line of authorized_keys, without comment and without newline.
	PublicKey string
	// Ports are opened for TCP in the Windows firewall.
	Ports []int
}

//go:embed templates
var files embed.FS

// forms holds the templates by platform; all other platforms use the plain form.
var forms = map[configv1.PlatformType]string{
	configv1.AWSPlatformType:     "aws.ps1.tmpl",
	configv1.AzurePlatformType:   "azure.ps1.tmpl",
	configv1.GCPPlatformType:     "gcp.ps1.tmpl",
	configv1.NutanixPlatformType: "cloudbase-init.ps1.tmpl",
	configv1.VSpherePlatformType: "cloudbase-init.ps1.tmpl",
}

const plainForm = "plain.ps1.tmpl"

// User returns the administrator account that the operator uses on Machines of a platform. The Machine API's
// provider for Azure creates its own account.
func User(platform string) string {
	if configv1.PlatformType(platform) == configv1.AzurePlatformType {
		return "capi"
	}
	return "Administrator"
}

// Generate generates the user data for Windows machines of a platform, as stored under SecretKey of Secret
// SecretName. The platform is an Infrastructure platform type: AWS, Azure, GCP, …; platforms without their own
// form get the form of None. Equal inputs produce equal scripts.
func Generate(platform string, publicKey ssh.PublicKey) ([]byte, error) {
	if publicKey == nil {
		return nil, errors.New("generate the user data: no public key is given")
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
		return nil, fmt.Errorf("generate the user data for platform %s: %w", platform, err)
	}
	return script.Bytes(), nil
}
