package main

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Description of the image.
const (
	imageName   = "windows-machine-config-operator"
	displayName = "Windows Machine Config Operator"
	summary     = "Makes Windows Server hosts nodes of an OpenShift cluster"
	description = "The operator makes Windows Server hosts nodes of an OpenShift cluster, configures and upgrades them, " +
		"and gives them back."
	vendor   = "Windows Machine Config"
	source   = "https://github.com/windows-machine-config/wmco"
	licenses = "Apache-2.0"
)

// user is the user that the operator runs as unless the cluster chooses another. A number is required, because the
// kubelet cannot verify that a user name is not root.
const user = "65532:65532"

// creationTime returns the time of the files and of the image: SOURCE_DATE_EPOCH, or the beginning of 1970, so that
// the same inputs give the same digest.
func creationTime(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%s is not a number of seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// imageLabels returns the labels that images of OpenShift operators have.
func imageLabels(version string) map[string]string {
	all := map[string]string{
		"name": imageName, "version": version, "release": "1", "vendor": vendor, "summary": summary,
		"description": description, "maintainer": vendor, "url": source, "com.redhat.component": imageName + "-container",
		"io.k8s.display-name": displayName, "io.k8s.description": description,
		"io.openshift.tags": "windows,machine,config,operator",
	}
	maps.Copy(all, imageAnnotations(version))
	return all
}

// imageAnnotations returns the annotations that OCI defines.
func imageAnnotations(version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title": displayName, "org.opencontainers.image.description": description,
		"org.opencontainers.image.version": version, "org.opencontainers.image.vendor": vendor,
		"org.opencontainers.image.source": source, "org.opencontainers.image.url": source,
		"org.opencontainers.image.licenses": licenses,
	}
}

// newImageConfig completes the configuration of an image with the command and the description.
func newImageConfig(layers *v1.ConfigFile, inherited *v1.ConfigFile, p v1.Platform, version string,
	created time.Time) *v1.ConfigFile {
	c := layers.DeepCopy()
	c.OS, c.Architecture, c.Variant, c.Created, c.Author = p.OS, p.Architecture, "", v1.Time{Time: created}, vendor
	all := map[string]string{}
	maps.Copy(all, inherited.Config.Labels)
	maps.Copy(all, imageLabels(version))
	c.Config = v1.Config{
		Env: inherited.Config.Env, Labels: all, User: user, WorkingDir: "/", Entrypoint: []string{"/" + operatorPath},
	}
	if len(c.Config.Env) == 0 {
		c.Config.Env = []string{"PATH=/usr/bin"}
	}
	return c
}
