package machinesets

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/windows-machine-config/wmco/internal/machineset"
)

// findAMI finds the newest image of a Windows version with Amazon's command line tool. Only images of Amazon
// count: anyone can publish an image with such a name.
func findAMI(ctx context.Context, region, version string) (image, name string, err error) {
	byHand := fmt.Sprintf("Specify an image with --image ami-…; list the images with:\n  %s", machineset.AMICommand(region, version))
	aws, err := exec.LookPath("aws")
	if err != nil {
		return "", "", fmt.Errorf("no image is specified, and the program aws, which can find an image, is not installed. %s",
			byHand)
	}
	var stdout, stderr bytes.Buffer
	lookUp := exec.CommandContext(ctx, aws, "ec2", "describe-images", "--region", region, "--owners", "amazon", //nolint:gosec // G204: no shell reads the arguments
		"--filters", "Name=name,Values="+machineset.AMINamePattern(version), "Name=is-public,Values=true",
		"--query", "reverse(sort_by(Images, &CreationDate))[0].[ImageId, Name]", "--output", "text")
	lookUp.Stdout, lookUp.Stderr = &stdout, &stderr
	if err := lookUp.Run(); err != nil {
		return "", "", fmt.Errorf("look up the image with aws: %w: %s\n%s", err, strings.TrimSpace(stderr.String()), byHand)
	}
	found := strings.Fields(stdout.String())
	if len(found) != 2 || !strings.HasPrefix(found[0], "ami-") {
		return "", "", fmt.Errorf("no image of Amazon for Windows Server %s in region %s. %s", version, region, byHand)
	}
	return found[0], found[1], nil
}
