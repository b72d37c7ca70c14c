import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletionException;
import software.amazon.awssdk.core.exception.SdkServiceException;

/**
 * Carries out what gateway-sdks.test.js asks, a line for each question, by a client of Java: Clients NAME ENDPOINT. The
 * lines are those of clients.go.
 */
public final class Clients {
  record Question(String verb, String bucket, String key, String span, String match) {}

  interface Client {
    List<String> ask(Question question) throws Exception;
  }

  public static void main(String[] words) throws Exception {
    Client client = words[0].equals("s3a") ? new S3aClient(words[1]) : new AwsClient(words[0], words[1]);
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = lines.readLine()) != null; ) {
      String[] asked = Arrays.copyOf(line.split("\t", -1), 5);
      try {
        List<String> said = client.ask(new Question(asked[0], asked[1], asked[2], word(asked[3]), word(asked[4])));
        out.println("ok\t" + String.join("\t", said));
      } catch (Exception failure) {
        Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
        int status = cause instanceof SdkServiceException refusal ? refusal.statusCode() : 0;
        String message = String.valueOf(cause.getMessage()).replaceAll("\\s", " ");
        out.println(String.join("\t", "error", cause.getClass().getSimpleName(), "" + status, message));
      }
    }
    System.exit(0); // whatever threads the clients have
  }

  static List<String> digest(byte[] body, String etag) throws Exception {
    String sha256 = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
    return List.of(sha256, "" + body.length, etag.replace("\"", ""));
  }

  private static String word(String given) {
    return given == null || given.isEmpty() ? null : given;
  }
}
